"""Relations between the numbers of an output, and in its text: what is looked for, and how each is shown."""
