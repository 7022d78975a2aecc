"""What a reader learns from: real questions, each with the passage that answers it where its source has one, facts, and
questions made of sentences of Wikipedia."""
