"""What an audit can run, and how: each call has its own input and random numbers."""
