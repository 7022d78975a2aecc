"""What the tools say to the proposed calls (section 2 of the paper, "Executing API Calls"), asked for over HTTP."""
