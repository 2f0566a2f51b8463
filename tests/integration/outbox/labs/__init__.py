"""A lab for each kind of sink: a real receiver, and a proxy before it that breaks."""
