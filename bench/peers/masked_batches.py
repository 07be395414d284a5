"""The batches of `qkv train encoder`, computed again in Python: the pieces of text of each batch, the masked tokens, and
what the model reads in their place. They are those of src/data/text_batches.cc and masking.cc, with numbers of
src/core/random.h. Spans and whole words are left out.
"""

from dataclasses import dataclass

SHUFFLE, MASKS = 2, 11  # streams of random numbers
MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


def philox(counter, seed):
    """Returns four random words: Philox4x32-10."""
    c0, c1, c2, c3 = counter
    key0, key1 = seed & MASK32, seed >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = b >> 32 ^ c1 ^ key0, b & MASK32, a >> 32 ^ c3 ^ key1, a & MASK32
        key0, key1 = (key0 + 0x9E3779B9) & MASK32, (key1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


class Random:
    """The random numbers of one (seed, stream, index)."""

    def __init__(self, seed, stream, index):
        self.seed, self.stream, self.index, self.position, self.words = seed, stream, index, 0, ()

    def next(self):
        if self.position % 4 == 0:
            self.words = philox((self.position // 4, self.stream, self.index & MASK32, self.index >> 32), self.seed)
        self.position += 1
        return self.words[(self.position - 1) % 4]

    def uniform(self):
        return (self.next() + 0.5) * 2.0**-32

    def below(self, n):
        return (self.next() << 32 | self.next()) * n >> 64

    def shuffle(self, values):
        for i in range(len(values), 1, -1):
            j = self.below(i)
            values[i - 1], values[j] = values[j], values[i - 1]


@dataclass
class Masking:
    """How a text becomes batches: the values of training.json and encoder.json, and the ids of the vocabulary."""

    seed: int
    max_length: int  # of a piece, with the tokens around it
    batch_tokens: int
    before: list  # ids of the tokens around a piece
    after: list
    mask: int
    mask_share: float = 0.15
    mask_token_share: float = 0.8
    random_token_share: float = 0.1

    def fixed(self):
        return {self.mask, *self.before, *self.after}


def pieces_of(documents, longest, first):
    """Returns (place of its first token in the text, tokens) of each piece. `first` tokens are in the first piece of a
    document."""
    pieces, place = [], 0
    for ids in documents:
        cuts = [0, *range(first, len(ids), longest), len(ids)]
        pieces += [(place + begin, ids[begin:end]) for begin, end in zip(cuts, cuts[1:]) if begin < end]
        place += len(ids)
    return pieces


def batches_of_pieces(pieces, masking):
    """Divides pieces into batches that are as full as their order allows."""
    batch, tokens = [], 0
    for piece in pieces:
        size = len(piece[1]) + len(masking.before) + len(masking.after)
        if tokens + size > masking.batch_tokens:
            yield batch
            batch, tokens = [], 0
        batch.append(piece)
        tokens += size
    yield batch


def masked(piece, masking, replacements, epoch):
    """Returns the ids that the model reads, the places of the tokens to predict, and these tokens."""
    place, tokens = piece
    ids, fixed = [*masking.before, *tokens, *masking.after], masking.fixed()
    random = Random(masking.seed, MASKS, epoch << 40 | place)
    units = [i for i, token in enumerate(ids) if token not in fixed]
    wanted = max(1, int(masking.mask_share * len(units) + random.uniform()))
    random.shuffle(units)
    places = sorted(units[:wanted])
    labels = [ids[i] for i in places]
    for i in places:
        u = random.uniform()
        if u < masking.mask_token_share:
            ids[i] = masking.mask
        elif u < masking.mask_token_share + masking.random_token_share:
            ids[i] = replacements[random.below(len(replacements))]
    return ids, places, labels


def masked_batches(documents, masking):
    """Yields the batches of all epochs, without end: lists of (ids, places, labels). `documents` are lists of ids."""
    documents = [ids for ids in documents if ids]
    replacements = sorted({token for ids in documents for token in ids} - masking.fixed())
    longest = min(masking.max_length, masking.batch_tokens) - len(masking.before) - len(masking.after)
    epoch = 0
    while True:
        random = Random(masking.seed, SHUFFLE, epoch)
        pieces = pieces_of(documents, longest, 1 + random.below(longest))
        random.shuffle(pieces)
        for batch in batches_of_pieces(pieces, masking):
            yield [masked(piece, masking, replacements, epoch) for piece in batch]
        epoch += 1
