"""Tasks for EleutherAI's lm-evaluation-harness: the suites, asked through its completions client. See README.md."""
