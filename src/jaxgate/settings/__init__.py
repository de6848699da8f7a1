"""What the user asked of a run: the values of the options, apart from the model because every run of pytest reads them."""

from jaxgate.settings.run import LAUNCHES, ArtifactSettings, ProfileWhen, RankSettings, RunKind, Settings, Size, Update
