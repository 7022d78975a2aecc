"""The corpus C: plain texts read from files of several forms, or written from the demo world, and for each tool those
that its heuristic keeps (appendix A of the paper)."""
