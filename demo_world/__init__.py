"""A small true world: facts from packages, pages and texts written from them, one split for everyone."""
