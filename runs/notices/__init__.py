"""Who is told that something waits for them, by which channel, and what happens when nobody hears."""
