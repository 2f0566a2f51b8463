"""The tour: thousands of jobs, two workers, one of them killed half-way.

At the end there is an honest count.

tasks       the one task, and the file that counts runs from outside
workers     the two worker processes, and their certain end
ledger      what the tour asks the database, and how it cleans up
tour        the steps, in order
narration   how they are told
"""
