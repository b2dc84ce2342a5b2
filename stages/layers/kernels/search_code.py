"""The machine code under `Compiled`: a k-d tree built in place, and its causal search (thesis
section 1.4.3, made exact).

The tree is complete: node 1 is the root, node n halves into 2n and 2n + 1, and node j of the 2^d at
level d holds the points from j N >> d to (j + 1) N >> d of the tree's order, so nothing is stored
of its shape. A search takes three levels at a step, from node n to 8n ... 8n + 7, whose boxes lie
side by side; group 0 holds the nodes it begins with, at the level that leaves whole steps down to
the leaves.
No fast mathematics: LLVM may neither fuse nor reorder an operation, so a distance is the
contract's, bit for bit, in float32 and float64. Kernels free the interpreter's lock, and all stay
in this file, whose time stamp is what numba's cache on disk is checked against.
Shapes: N points, M queries, k neighbours, G = (2 leaves) / 8 + 1 groups. Units: the caller's.
"""

from typing import no_type_check

import numpy as np

from stages.layers.kernels.machine_code import compiled

LEAF = 32  # points of a leaf, at most
CHILDREN = 8  # of a step of the search
DEEPEST = 40  # more levels than any memory holds
SPARE = 16  # candidates beyond k and a quarter of it before the best k are chosen again
FEW = 16  # entries that are sorted by insertion
MANY = 64  # entries of which more than three are looked at to part them
NONE = np.int64(0)  # numba compiles a function once more for a literal 0
# numba tests a signed place for counting from the end: in the loops that cost, places are unsigned
PLACE = np.uintp


@compiled
# here and below: numba compiles the function itself, not a type checker's wrapper around it
@no_type_check
def grow(points, index, inverse, boxes, lowest, top, depth, leaves):
    """Build the subtree of node `top` down to level `depth`; the leaves are at level `leaves`.

    Reorders points (N + LEAF, 4) and index (N + LEAF,); fills the boxes (G, 2, 4, 8; low and high)
    and the lowest indices (2 leaves,) of the nodes that a search meets. Splits are medians along
    the axis of the widest extent times `inverse` (4,).
    """
    size, nodes, height = len(index) - LEAF, np.empty(DEEPEST, np.int64), 1
    low, high = np.empty(4, points.dtype), np.empty(4, points.dtype)
    nodes[0] = top
    while height:
        height -= 1
        node, level = nodes[height], _level(nodes[height])
        place = node - (1 << level)
        start, stop = place * size >> level, (place + 1) * size >> level
        least = _describe(points, index, start, stop, low, high)
        if (leaves - level) % 3 == 0:
            lowest[node] = least
            for axis in range(4):
                boxes[node >> 3, 0, axis, node & 7], boxes[node >> 3, 1, axis, node & 7] = (
                    low[axis],
                    high[axis],
                )
        if level < depth:
            widest = NONE
            for axis in range(1, 4):
                if (high[axis] - low[axis]) * inverse[axis] > (
                    high[widest] - low[widest]
                ) * inverse[widest]:
                    widest = axis
            _halve(points, index, widest, start, stop, (2 * place + 1) * size >> (level + 1))
            nodes[height], nodes[height + 1] = 2 * node + 1, 2 * node
            height += 2


@compiled
@no_type_check
def _level(node):
    """The level of a node."""
    level = 0
    while node >> (level + 1):
        level += 1
    return level


@compiled
@no_type_check
def _describe(points, index, start, stop, low, high):
    """Fill the box of points start to stop; returns their lowest index."""
    for axis in range(4):
        low[axis] = high[axis] = points[start, axis]
    least = index[start]
    for at in range(start, stop):
        least = min(least, index[at])
        for axis in range(4):
            low[axis], high[axis] = (
                min(low[axis], points[at, axis]),
                max(high[axis], points[at, axis]),
            )
    return least


@compiled
@no_type_check
def _halve(points, index, axis, start, stop, middle):
    """Quickselect in place: no point before `middle` lies above one after it along the axis."""
    low, high, chance = start, stop - 1, np.uint32(start + 1)
    while low < high:
        pivot = _pivot(points, axis, low, high, chance)
        chance = np.uint32(chance * np.uint32(1664525) + np.uint32(1013904223))
        left, right = low, high
        while left <= right:
            while points[left, axis] < pivot:
                left += 1
            while points[right, axis] > pivot:
                right -= 1
            if left <= right:
                for each in range(4):
                    points[left, each], points[right, each] = (
                        points[right, each],
                        points[left, each],
                    )
                index[left], index[right] = index[right], index[left]
                left += 1
                right -= 1
        if middle <= right:
            high = right
        elif middle >= left:
            low = left
        else:
            return


@compiled
@no_type_check
def _pivot(points, axis, low, high, chance):
    """The median of three values, at places that no order of the points can foresee."""
    width = np.uint32(high - low + 1)
    first = points[low + chance % width, axis]
    second = points[low + (chance >> np.uint32(7)) % width, axis]
    third = points[low + (chance >> np.uint32(13)) % width, axis]
    return max(min(first, second), min(max(first, second), third))


@compiled
@no_type_check
def search(
    points, index, boxes, lowest, rows, queries, scale, latest, last, keys, nearest, comparisons
):
    """Fill the rows of keys (M, k; infinite before), nearest (M, k; their indices) and comparisons
    (M,; 0 before).

    Tree as `grow` left it, points and boxes flat. queries (M, 4) with scale (M, 4) see the points
    before time latest (M,), and of those at that time the indices up to last (M,); none if it is
    -infinity. A key is a distance's bits: of floats that are not negative they order alike.
    """
    size, k, leaves = len(index) - LEAF, keys.shape[1], len(lowest) // 2
    depth, room = _level(leaves), k + k // 4 + SPARE
    nodes, bounds = (
        np.empty(DEEPEST * CHILDREN, np.int64),
        np.empty(DEEPEST * CHILDREN, points.dtype),
    )
    distance = np.empty(LEAF, points.dtype)
    zero, infinity = points.dtype.type(0), points.dtype.type(np.inf)
    key, best, chosen = (
        distance.view(keys.dtype),
        np.empty(room + LEAF, keys.dtype),
        np.empty(room + LEAF, np.int32),
    )
    spare, spared = np.empty_like(best), np.empty_like(chosen)
    for row in rows:
        if latest[row] == -infinity:
            continue
        at, weight = _asked(queries[row], scale[row])
        least = (zero, zero, zero, max(at[3] - latest[row], zero))
        distance[0] = infinity
        # of the best k, as far as they are known
        worst, worst_key, worst_index, held, limit = infinity, key[0] - 1, np.int32(-1), NONE, k
        nodes[0], bounds[0], height = 0, zero, 1
        while height:
            height -= 1
            node = nodes[height]
            if bounds[height] > worst or (bounds[height] == worst and lowest[node] > worst_index):
                continue
            if node < leaves:
                _bounds(boxes, PLACE(64 * node), at, weight, least, latest[row], distance)
                height = _push(nodes, bounds, height, CHILDREN * node, distance, worst)
                continue
            start = (node - leaves) * size >> depth
            count = ((node - leaves + 1) * size >> depth) - start
            _distances(points, index, PLACE(start), at, weight, latest[row], last[row], distance)
            comparisons[row] += count
            held = _candidates(best, chosen, held, key, index, start, count, worst_key)
            if held >= limit:
                _select(best, chosen, spare, spared, held, k)
                worst_key, worst_index, held, limit = best[k - 1], chosen[k - 1], k, room
                key[0] = worst_key
                worst = distance[0]
        _answer(best, chosen, spare, spared, held, keys[row], nearest[row])


@compiled
@no_type_check
def _asked(query, scale):
    """A query's place, and the weights of its axes: -0 has other bits than 0."""
    return (query[0], query[1], query[2], query[3]), (
        abs(scale[0]),
        abs(scale[1]),
        abs(scale[2]),
        abs(scale[3]),
    )


@compiled
@no_type_check
def _candidates(best, chosen, held, key, index, start, count, worst_key):
    """Put a leaf's points that may be among the best behind the first `held`; how many there are
    then. No branch: whether a point is a candidate cannot be foreseen."""
    for here in range(count):
        best[PLACE(held)], chosen[PLACE(held)] = key[here], index[PLACE(start + here)]
        held += key[here] <= worst_key
    return held


@compiled
@no_type_check
def _answer(best, chosen, spare, spared, held, keys, nearest):
    """Write the best of `held` candidates, in order, into a query's keys and nearest (k,)."""
    if held > len(keys):
        _select(best, chosen, spare, spared, held, len(keys))
        held = len(keys)
    _sort(best, chosen, spare, spared, held)
    for place in range(held):
        keys[place], nearest[place] = best[place], chosen[place]


@compiled
@no_type_check
def _bounds(boxes, group, at, weight, least, latest, bound):
    """The contract's distances to 8 boxes, on gaps of `least` or more; infinite where no point
    is seen."""
    for lane in range(CHILDREN):
        low, high = group + PLACE(lane), group + PLACE(32 + lane)
        x = max(max(boxes[low] - at[0], at[0] - boxes[high]), least[0])
        y = max(max(boxes[low + PLACE(8)] - at[1], at[1] - boxes[high + PLACE(8)]), least[1])
        z = max(max(boxes[low + PLACE(16)] - at[2], at[2] - boxes[high + PLACE(16)]), least[2])
        t = max(max(boxes[low + PLACE(24)] - at[3], at[3] - boxes[high + PLACE(24)]), least[3])
        total = (
            weight[0] * (x * x) + weight[1] * (y * y) + weight[2] * (z * z) + weight[3] * (t * t)
        )
        bound[lane] = total if boxes[low + PLACE(24)] <= latest else boxes.dtype.type(np.inf)


@compiled
@no_type_check
def _push(nodes, bounds, height, first, bound, worst):
    """Put on the stack those of the children from `first` that may hold a neighbour, the nearest
    on top; returns the new height."""
    infinity, children = bound.dtype.type(np.inf), 0
    for lane in range(CHILDREN):
        children += (bound[lane] <= worst) & (bound[lane] < infinity)
    for lane in range(CHILDREN):
        nearer = 0
        for other in range(CHILDREN):
            nearer += (bound[other] < bound[lane]) | (
                (bound[other] == bound[lane]) & (other < lane)
            )
        place = height + ((children - 1 - nearer) & 7)  # those that are left out land above the top
        nodes[place], bounds[place] = first + lane, bound[lane]
    return height + children


@compiled
@no_type_check
def _distances(points, index, start, at, weight, latest, last, distance):
    """The contract's distances of LEAF points from `start`, a leaf's and those after; infinite
    for points that are not seen."""
    for here in range(LEAF):
        point = PLACE(4) * (start + PLACE(here))
        x = at[0] - points[point]
        y = at[1] - points[point + PLACE(1)]
        z = at[2] - points[point + PLACE(2)]
        time = points[point + PLACE(3)]
        t = at[3] - time
        seen = (time < latest) | ((time == latest) & (index[start + PLACE(here)] <= last))
        total = (
            weight[0] * (x * x) + weight[1] * (y * y) + weight[2] * (z * z) + weight[3] * (t * t)
        )
        distance[here] = total if seen else points.dtype.type(np.inf)


@compiled
@no_type_check
def _before(key, index, than, other):
    """Whether a neighbour comes before another: nearer, or as near with a lower index."""
    return (key < than) | ((key == than) & (index < other))


@compiled
@no_type_check
def _select(best, chosen, spare, spared, held, k):
    """Bring the k best of `held` entries to the front, the last of them to place k - 1."""
    low, high = NONE, held
    while high - low > FEW:
        place = _part(best, chosen, spare, spared, low, high, k - 1)
        if place == k - 1:
            return
        if place < k - 1:
            low = place + 1
        else:
            high = place
    _insert(best, chosen, low, high)


@compiled
@no_type_check
def _sort(best, chosen, spare, spared, held):
    """Sort the first `held` entries, best first."""
    waiting, height, low, high = np.empty((DEEPEST, 2), np.int64), 0, NONE, held
    while True:
        while high - low > FEW:
            place = _part(best, chosen, spare, spared, low, high, (low + high) >> 1)
            if (
                place - low > high - place
            ):  # the smaller part first: so few wait that DEEPEST is enough
                waiting[height, 0], waiting[height, 1], low = low, place, place + 1
            else:
                waiting[height, 0], waiting[height, 1], high = place + 1, high, place
            height += 1
        _insert(best, chosen, low, high)
        if not height:
            return
        height -= 1
        low, high = waiting[height, 0], waiting[height, 1]


@compiled
@no_type_check
def _part(best, chosen, spare, spared, low, high, aim):
    """Part entries low to high - 1 by one that stands in a sample where `aim` stands in all;
    returns the place between the parts."""
    sample, last = 15 if high - low > MANY else 3, high - 1
    for at in range(sample):
        _swap(best, chosen, low + at, low + at * ((high - low) // sample))
    _insert(best, chosen, low, low + sample)
    _swap(best, chosen, low + (aim - low) * sample // (high - low), last)
    key, index, left, right = best[last], chosen[last], low, last
    for at in range(low, last):
        this, which = best[PLACE(at)], chosen[PLACE(at)]
        before = _before(this, which, key, index)
        place = PLACE(left if before else right)
        spare[place], spared[place] = this, which
        left, right = left + before, right - 1 + before
    spare[left], spared[left] = key, index
    for at in range(low, high):
        best[PLACE(at)], chosen[PLACE(at)] = spare[PLACE(at)], spared[PLACE(at)]
    return left


@compiled
@no_type_check
def _swap(best, chosen, one, other):
    """Exchange two entries."""
    best[one], best[other] = best[other], best[one]
    chosen[one], chosen[other] = chosen[other], chosen[one]


@compiled
@no_type_check
def _insert(best, chosen, low, high):
    """Sort a few entries."""
    for at in range(low + 1, high):
        key, index, place = best[PLACE(at)], chosen[PLACE(at)], at
        while place > low and _before(key, index, best[PLACE(place - 1)], chosen[PLACE(place - 1)]):
            best[PLACE(place)], chosen[PLACE(place)] = (
                best[PLACE(place - 1)],
                chosen[PLACE(place - 1)],
            )
            place -= 1
        best[PLACE(place)], chosen[PLACE(place)] = key, index
