"""The grid model written straightforwardly, as document G's public code does it: pseudo-batches
padded to the most points that a cell has, windows by rolling with a mask of all pairs, neighbours
found and masked anew in every layer, attention as a softmax of a matrix. Weights are those of a
GridTNP, so that both say the same."""

import torch
from torch import nn

from stages.layers import grid as on


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def attention(query, key, value, mask):
    """softmax(q k / sqrt h + mask) v, heads before tokens."""
    logit = query @ key.mT / query.shape[-1] ** 0.5
    return (logit.masked_fill(~mask, -1e9).softmax(-1) @ value).transpose(-2, -3).flatten(-2)


class PlainGridTNP(nn.Module):
    """Of a GridTNP with MHCA, coarsened by the encoder, windows and nearest cells."""

    def __init__(self, model):
        super().__init__()
        self.model, self.heads = model, model.gather.heads

    def gathered(self, asking, own, points, real, cell):
        """Every cell's points in a row of a padded table."""
        gather, (sets, cells, width) = self.model.gather, own.shape
        found = []
        for row in range(sets):
            order = cell[row][real[row]].argsort(stable=True)
            where = cell[row][real[row]][order]
            counts = torch.bincount(where, minlength=cells)
            place = torch.arange(len(where)) - (counts.cumsum(0) - counts)[where]
            table = own.new_zeros(cells, int(counts.max()) + 1, width)
            mask = torch.zeros(table.shape[:2], dtype=torch.bool)
            mask[:, 0] = True
            table = table.index_put(
                (torch.arange(cells), torch.zeros(cells, dtype=torch.long)), own[row]
            )
            table = table.index_put((where, place + 1), points[row][real[row]][order])
            mask[where, place + 1] = True
            key, value = gather.key_value(table).chunk(2, -1)
            query = heads_of(gather.query(asking[row])[:, None], self.heads)
            read = attention(
                query, heads_of(key, self.heads), heads_of(value, self.heads), mask[:, None, None]
            )
            found.append(gather.outward(read[:, 0]))
        return torch.stack(found)

    def windowed(self, layer, tokens, grid, shift):
        """Roll, cut into windows, mask all pairs that the roll brought together, roll back."""
        size, (rows, columns) = layer.among.window, grid.shape
        folded = tokens.unflatten(1, grid.shape).roll((-shift, -shift), (1, 2))
        labels = torch.zeros(rows, columns)
        if shift:
            labels[rows - shift :] = 1  # the latitudes do not go around

        def cut(x):
            blocks = x.unflatten(2, (columns // size, size)).unflatten(1, (rows // size, size))
            return blocks.permute(0, 1, 3, 2, 4, 5).flatten(3, 4).flatten(0, 2)

        parts, marks = cut(folded), cut(labels[None, :, :, None])[:, :, 0]
        mask = (marks[:, :, None] == marks[:, None]).repeat(len(tokens), 1, 1)[:, None]
        query, key, value = layer.among.attention.inward(parts).chunk(3, -1)
        read = attention(*(heads_of(one, self.heads) for one in (query, key, value)), mask)
        read = layer.among.attention.outward(read)
        back = read.unflatten(0, (len(tokens), rows // size, columns // size))
        back = back.unflatten(3, (size, size)).permute(0, 1, 3, 2, 4, 5)
        return back.flatten(3, 4).flatten(1, 2).roll((shift, shift), (1, 2)).flatten(1, 2)

    def read(self, layer, target, tokens, grid, x):
        """Neighbours found anew, their tokens gathered, then projected."""
        near = on.neighbours(grid, x, self.model.nearest)
        parts = tokens[torch.arange(len(tokens))[:, None, None], near]
        key, value = layer.reading.key_value(parts).chunk(2, -1)
        query = heads_of(layer.reading.query(target)[:, :, None], self.heads)
        mask = torch.ones(*near.shape[:2], 1, 1, near.shape[2], dtype=torch.bool)
        read = attention(query, heads_of(key, self.heads), heads_of(value, self.heads), mask)
        return layer.reading.outward(read[:, :, 0])

    def forward(self, batch):
        """The law at every target."""
        model, fine = self.model, batch.grid
        target, coarse = model.token(batch.target_x, None, None, 1.0), fine.coarse(model.patch)
        own = model.cell_tokens(fine)
        points = torch.cat((model.token(batch.context_x, batch.context_y, None, 0.0), own), 1)
        x = torch.cat((batch.context_x, fine.places().expand(len(own), -1, -1)), 1)
        real = torch.cat((batch.context_mask, torch.ones_like(own[:, :, 0], dtype=torch.bool)), 1)
        tokens = model.cell_tokens(coarse)
        normal = model.gather_norm(tokens)
        tokens = tokens + self.gathered(
            normal + model.query, normal, model.gather_norm(points), real, on.nearest(coarse, x)
        )
        for layer in model.layers:
            for shift in (0, layer.among.window // 2):
                tokens = tokens + self.windowed(layer, layer.norm(tokens), coarse, shift)
            tokens = layer.feed(tokens)
            asked, kept = layer.target_norm(target), layer.memory_norm(tokens)
            target = target + self.read(layer, asked, kept, coarse, batch.target_x)
            target = layer.target_feed(target)
        return model.law.predict(model.readout(target).float())
