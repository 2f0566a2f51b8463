"""The app without tasks: what `livewell worker` and `livewell up` run when none is named. It keeps
fresh whatever types are applied.
"""

from livewell.app import Livewell

app = Livewell()
