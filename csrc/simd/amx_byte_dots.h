// Dot products of rows of 8-bit integers with the tile registers of AMX, for byte_loop() in isa.h.
#pragma once

#include "simd/isa.h"

namespace dcsvm {

// Returns null if the processor has no such registers, the system does not grant them, or DCSVM_ISA
// names an instruction set.
const ByteLoop* amx_byte_dots();

// The same loop with registers of plain C++, to test the layout of rows, panels and sums on any
// machine.
const ByteLoop& emulated_byte_dots();

}  // namespace dcsvm
