"""What a data type is: pure values, and the reading of type and upstream files."""
