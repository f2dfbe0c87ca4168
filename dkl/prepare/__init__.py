"""Before the first pass: what y holds, where sigma starts, which map is drawn, which rows are held out."""
