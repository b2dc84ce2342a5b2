"""TETNP, translation-equivariant transformer neural process (document N, sections 4.3, 5.2, 6.2 and
6.3.2; Ashman et al. 2024).

As TNP, but positions leave the tokens, MLP([y, flag]), and enter the attention as differences
(layers/relative.py): a shift of all points changes nothing. `turned`: by distances alone, so that a
rotation changes nothing either (RE-TETNP). `form`: how a difference enters the logits. Memory is
linear in the points, at any number of them. Heads may have a width of their own (figure 5.3.1).
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.layers import likelihoods
from stages.layers.heads import Predictive
from stages.layers.mlp import mlp
from stages.layers.processes import Layer, asked, context_features
from stages.layers.relative import FORMS, RelativeAttention


class FreeHeads(RelativeAttention):
    """With heads of `each` numbers, however wide the tokens are."""

    def __init__(
        self, x_dim: int, width: int, heads: int, each: int, hidden: int, form: str, turned: bool
    ):
        super().__init__(x_dim, width, heads, hidden, form, turned)
        self.query = nn.Linear(width, heads * each, bias=False)
        self.key_value = nn.Linear(width, 2 * heads * each, bias=False)
        self.outward = nn.Linear(heads * each, width)

    def forward(
        self,
        queries: Float[Tensor, "B Q H"],
        memory: Float[Tensor, "B N H"],
        real: Bool[Tensor, "B N"],
        query_x: Float[Tensor, "B Q X"],
        memory_x: Float[Tensor, "B N X"],
    ) -> Float[Tensor, "B Q H"]:
        """What queries read of the memory, the bias alone of an empty one."""
        if not memory.shape[1]:
            return self.outward.bias.expand_as(queries)
        return super().forward(queries, memory, real, query_x, memory_x)


class TETNP(FieldModel):
    """form: "post", "pre", "rbf" or "identity"; turned = 1: rotation equivariant; head_width:
    numbers a head, 0 for width / heads; hidden: of the pairs' MLP; head: the law of each
    component."""

    context, learns, outputs = "slice", "gradient", "any"
    words = {"form": FORMS, "turned": (0, 1), "head": tuple(likelihoods.HEADS)}

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        form: str = "post",
        turned: int = 0,
        head: str = "gaussian",
        width: int = 32,
        heads: int = 4,
        head_width: int = 0,
        hidden: int = 16,
        layers: int = 3,
    ):
        super().__init__()
        self.head, self.law, self.i_dim = head, likelihoods.HEADS[head], i_dim
        self.encoder = mlp(i_dim + 1, width, width, width)

        def attention() -> RelativeAttention:
            if not head_width:
                return RelativeAttention(x_dim, width, heads, hidden, form, bool(turned))
            return FreeHeads(x_dim, width, heads, head_width, hidden, form, bool(turned))

        self.layers = nn.ModuleList(Layer(width, attention()) for _ in range(layers))
        self.readout = mlp(width, width, width, o_dim * self.law.numbers)

    def forward(self, batch: Batch) -> Predictive:
        """The law at every target, B T O; an empty context gives the same law everywhere."""
        context = self.encoder(context_features(batch.context_y))
        target = self.encoder(asked(batch.target_x, self.i_dim))
        x, real = batch.context_x, batch.context_mask
        for layer in self.layers:
            context = layer(context, context, real, (x, x))
            target = layer(target, context, real, (batch.target_x, x))
        return self.law.predict(likelihoods.full(self.readout(target)))
