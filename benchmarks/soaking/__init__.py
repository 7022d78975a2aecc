"""A gateway kept under everything at once: clients that leave, tools that fail, too little cache.

`wishes` says what is asked for, `client` asks and judges each answer, `watch`
looks at the process meanwhile."""
