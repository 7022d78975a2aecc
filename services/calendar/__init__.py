"""Calendar: says what day it is (section 3 of the paper)."""
