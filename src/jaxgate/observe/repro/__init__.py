"""Programs that say nothing of their author, for a file that anybody may run; and smaller ones that show the same."""

from jaxgate.observe.repro import contents, edit, modules
from jaxgate.observe.repro.anonymous import NotAnonymousError, anonymise
from jaxgate.observe.repro.inputs import draw
from jaxgate.observe.repro.jax_code import NotWrittenError, jax_code, lowered_again
from jaxgate.observe.repro.modules import readable
from jaxgate.observe.repro.server import pack, unpack
from jaxgate.observe.repro.standalone_source import standalone_source
