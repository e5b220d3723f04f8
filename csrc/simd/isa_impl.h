// The bodies behind isa.h, included once per instruction set by isa.cc, which defines
// DCSVM_ISA (a namespace name), DCSVM_ISA_NAME and DCSVM_VECTOR_BYTES. Therefore no include guard,
// neither here nor in the parts, which are nothing by themselves.

namespace dcsvm {
namespace DCSVM_ISA {

#define DCSVM_INLINE static inline __attribute__((always_inline))

// in this order: each part uses those before it
// clang-format off
#include "simd/vectors_impl.h"
#include "simd/kernel_value_impl.h"
#include "simd/tiles_impl.h"
#include "simd/sums_impl.h"
#include "simd/descent_impl.h"
// clang-format on

template <class Real>
static constexpr DescentPasses<Real> descent_passes = {descend<Real>, best_companion<Real>,
                                                       descend_pair<Real>, best_partner<Real>};

static const Isa functions = {
    DCSVM_ISA_NAME,       dense<float>,  dense<double>,         bytes<float>,
    bytes<double>,        sparse<float>, sparse<double>,        weighted_sum<float>,
    weighted_sum<double>, add_in_order,  descent_passes<float>, descent_passes<double>,
    subtract_product,     dot,           add_multiple};

#undef DCSVM_INLINE

}  // namespace DCSVM_ISA
}  // namespace dcsvm
