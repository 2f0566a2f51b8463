"""The app without tasks: `livewell worker` and `livewell up` run it when none is named.

It keeps fresh whatever types are applied.
"""

from livewell.app import Livewell

app = Livewell()
