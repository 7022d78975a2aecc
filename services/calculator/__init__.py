"""Calculator: exact arithmetic on an expression, rounded to two decimals (section 3 of the paper)."""
