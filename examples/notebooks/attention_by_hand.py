# %% [markdown]
# # Attention by hand
#
# Scaled dot-product attention, "Attention Is All You Need", section 3.2.1, step by step in NumPy, and compared with
# `qkv.attention`. Three tokens, one head, width 4.

# %%
import numpy as np

import qkv

random = np.random.default_rng(0)
T, d = 3, 4
q, k, v = random.normal(size=(3, T, d)).astype(np.float32)

# %% [markdown]
# The score of query i and key j is their dot product, divided by the square root of the width: without the division,
# scores grow with the width and the softmax saturates.

# %%
scores = q @ k.T / np.sqrt(d)
print(scores.round(2))

# %% [markdown]
# The softmax makes a row of scores positive with sum 1. Its largest score is subtracted first, so that no exponential
# overflows.

# %%
weights = np.exp(scores - scores.max(axis=1, keepdims=True))
weights /= weights.sum(axis=1, keepdims=True)
print(weights.round(2))

# %% [markdown]
# The output of a query is the mean of the values with these weights.

# %%
out = weights @ v
np.testing.assert_allclose(out, qkv.attention(q, k, v), rtol=1e-5, atol=1e-6)

# %% [markdown]
# A causal mask hides the keys that come after a query: their scores become −∞, and their weights 0. So the first
# query, which sees one key, returns its value.

# %%
masked = np.where(np.tri(T, dtype=bool), scores, -np.inf)
causal = np.exp(masked - masked.max(axis=1, keepdims=True))
causal /= causal.sum(axis=1, keepdims=True)
out, kernel_weights = qkv.attention(q, k, v, causal=True, return_weights=True)
np.testing.assert_allclose(causal, kernel_weights, rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(out[0], v[0], rtol=1e-6)
print(causal.round(2))

# %% [markdown]
# The backward pass. With the gradient of the output, the values get those of the queries that look at them, and a score
# gets its weight times how much its value is better than the mean.

# %%
dout = random.normal(size=(T, d)).astype(np.float32)
dv = causal.T @ dout
dweights = dout @ v.T
dscores = causal * (dweights - (dweights * causal).sum(axis=1, keepdims=True)) / np.sqrt(d)
dq, dk = dscores @ k, dscores.T @ q

out, lse = qkv.attention(q, k, v, causal=True, return_lse=True)
for by_hand, kernel in zip((dq, dk, dv), qkv.attention_backward(dout, q, k, v, out, lse, causal=True)):
    np.testing.assert_allclose(by_hand, kernel, rtol=1e-4, atol=1e-5)

# %% [markdown]
# Several heads are a further axis, [batch, heads, tokens, width]. The kernel never stores the matrix of weights, so
# 4,096 tokens need no 16 million numbers for each head.

# %%
long = random.normal(size=(1, 2, 4096, 16)).astype(np.float32)
print(qkv.attention(long, long, long, causal=True).shape)
