// The dot products of byte_dots.h with the tile registers of AMX.
#pragma once

#include "simd/byte_dots.h"

namespace dcsvm {

// Null where the processor has no such registers, the system does not lend them, or DCSVM_ISA asks
// for an instruction set by name.
const ByteDots* amx_byte_dots();

}  // namespace dcsvm
