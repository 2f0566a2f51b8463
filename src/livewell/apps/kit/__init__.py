"""What demos share.

Apps import nothing of each other; a part that two of them need is here.

processes   `livewell` commands as processes of the demo's own: gone when it is, started again when they die
postgres    an empty database of the demo's own, and the embedded server kept running
terminal    the words on a console: styled on a terminal, plain in a pipe
"""
