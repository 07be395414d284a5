// Where the tags of a source sentence stand in its translation.
#pragma once

#include <cstddef>
#include <vector>

#include "documents/split_text.h"
#include "text/alignment/aligned_units.h"

namespace qkv {

struct PlacedTag {
  size_t tag = 0;   // of TextPart::tags
  size_t unit = 0;  // of AlignedUnits::units, before which it stands; their number: at the end
};

// Places each tag once; `unit` never decreases. Elements are nested as in the source. An element encloses one range of
// units, the one in which the weight of the units that are aligned with its words exceeds that of the others the most.
// If none is aligned, it encloses the next unit that no other element has. Elements of the same parent may change their
// order. Tags without a partner, or nested more than 64 deep, keep the order of the source, as do those of a part that
// asks for it.
std::vector<PlacedTag> place_tags(const TextPart& source, const AlignedUnits& aligned);

}  // namespace qkv
