# Declarations of csrc/ as _core.pyx uses them.
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.functional cimport function
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "simd/kernel.h" namespace "dcsvm" nogil:
    cdef enum class Argument(int):
        none

    cdef struct CKernel "dcsvm::Kernel":
        Argument argument
        double gamma
        double coef0
        int degree

    CKernel kernel_of(const string&, const string&) except +
    cbool is_distance(Argument)
    cbool c_is_from_products "dcsvm::is_from_products"(Argument)


cdef extern from "simd/isa.h" namespace "dcsvm" nogil:
    cpdef enum class Form(int):
        difference
        product
        sparse
        bytes
        precomputed

    cdef struct Isa:
        const char* name
    const Isa& isa()

    cdef struct ByteLoop:
        const char* name
    const ByteLoop* byte_loop(Argument)


cdef extern from "rows/codes.h" namespace "dcsvm" nogil:
    cdef cppclass CodedColumns:
        vector[int32_t] numeric
        vector[vector[int32_t]] codes
        double cost() const
        size_t row_size() const
        cbool operator==(const CodedColumns&) const

    cdef cppclass CPoints "dcsvm::Points":
        size_t n_samples
        size_t n_features
        cbool is_mapped
        const float* dense
        size_t dense_stride
        const uint8_t* dense_bytes
        size_t n_codes
        const uint8_t* codes
        const double* other_terms
        const int64_t* indptr
        const int32_t* indices
        const float* values
        cbool has_only_ones
        const double* row_terms
        const uint8_t* bytes
        const int32_t* byte_sums
        int32_t byte_origin
        int32_t byte_step
        const int32_t* columns
        size_t byte_row_size() const
        cbool is_dense() const

    cdef struct RowList:
        const CPoints* points
        const int32_t* index
        size_t size

    cdef cppclass CodeSearch:
        CodeSearch(size_t) except +
        void see(const CPoints&, int) except +
        CodedColumns found() except +

    void c_find_fitting "dcsvm::find_fitting"(
        const CPoints&, const CodedColumns&, Argument, int, uint8_t*, double*) except +
    void c_encode "dcsvm::encode"(const CPoints&, const CodedColumns&, int, uint8_t*) except +
    void take_coded(const CodedColumns&, const uint8_t*, CPoints&)


cdef extern from "kernel/kernel_setup.h" namespace "dcsvm" nogil:
    cdef struct KernelSetup:
        CKernel kernel
        Form form
        cbool exact_products
        cbool is_flat
    KernelSetup choose_setup(const CPoints&, const CKernel&, double) except +
    double c_largest_squared_norm "dcsvm::largest_squared_norm"(const CPoints&, int) except +
    void compute_row_terms(const CPoints&, const KernelSetup&, int, double*) except +

    double c_tile_cost "dcsvm::tile_cost"(const KernelSetup&, const CPoints&)
    cbool bytes_beat_sparse(const CPoints&, Argument)


cdef extern from "rows/bytes.h" namespace "dcsvm" nogil:
    cbool c_suit_bytes "dcsvm::suit_bytes"(size_t)
    cbool c_may_be_bytes "dcsvm::may_be_bytes"(size_t, Argument)
    cbool c_may_step "dcsvm::may_step"(size_t, double, double)
    cbool are_bytes(const CPoints&, int) except +
    double bytes_cost(size_t, Argument)
    void c_find_bytes "dcsvm::find_bytes"(const CPoints&, int, uint8_t*) except +
    void c_sum_bytes "dcsvm::sum_bytes"(const CPoints&, int, int32_t*) except +
    void c_encode_bytes "dcsvm::encode_bytes"(const CPoints&, int, uint8_t*, int32_t*) except +


cdef extern from "rows/components.h" namespace "dcsvm" nogil:
    void c_reorder_rows "dcsvm::reorder_rows"(uint8_t*, size_t, const int32_t*, size_t, int) except +
    void c_hash_rows "dcsvm::hash_rows"(const uint32_t*, size_t, size_t, const uint64_t*, size_t, int,
                                        uint64_t*)
    cbool c_are_equal_rows "dcsvm::are_equal_rows"(
        const uint8_t*, size_t, const int32_t*, const int32_t*, size_t, int) except +
    void find_first_equal(const uint64_t*, size_t, int, int32_t*) except +

    cdef cppclass Components:
        vector[int32_t] order
        vector[int64_t] start

    Components c_find_components "dcsvm::find_components"(
        const CPoints&, const CDistance&, size_t, size_t, int) except +
    vector[int32_t] c_neighbour_order "dcsvm::neighbour_order"(const CPoints&, int) except +


cdef extern from "rows/cutoff.h" namespace "dcsvm" nogil:
    cdef cppclass CDistance "dcsvm::Distance":
        double value
        Argument argument

    cdef cppclass CCutoff "dcsvm::Cutoff":
        CDistance distance
        double value

    double least_distance(Argument, size_t, const float*, const float*, const float*, const float*)
    double c_share_apart "dcsvm::share_apart"(const RowList&, const CDistance&, size_t, int) except +


cdef extern from "system/memory.h" namespace "dcsvm" nogil:
    void c_trim_heap "dcsvm::trim_heap"()


cdef extern from "threads/parallel.h" namespace "dcsvm" nogil:
    const cbool has_openmp
    int c_allowed_threads "dcsvm::allowed_threads"()

    cdef cppclass LoopSeconds:
        double elapsed
        double reserved
        double working

    cdef cppclass CLap "dcsvm::Lap":
        double seconds
        LoopSeconds loops

    CLap c_next_lap "dcsvm::next_lap"()

    cdef cppclass CStop "dcsvm::Stop":
        void request()
        void set_deadline(double)
        cbool is_requested() const


cdef extern from "kernel/kernel_product.h" namespace "dcsvm" nogil:
    cdef struct SourceWeights:
        size_t n_columns
        const int64_t* indptr
        const int32_t* columns
        const double* values

    cdef enum class Precision:
        single_tiles
        double_tiles

    cdef struct ProductCount:
        cbool complete

    ProductCount c_kernel_product "dcsvm::kernel_product"(
        const KernelSetup&, const RowList&, const RowList&, const SourceWeights&, Precision,
        const CCutoff&, int, double*, const CStop*) except +

    cdef struct ClusterRanges:
        const int64_t* target_start
        const int64_t* source_begin
        const int64_t* source_end
        size_t n_clusters

    ProductCount c_cluster_product "dcsvm::cluster_product"(
        const KernelSetup&, const RowList&, const RowList&, const SourceWeights&, const ClusterRanges&,
        Precision, const CCutoff&, int, double*, const CStop*) except +


cdef extern from "kernel/kernel_matrix.h" namespace "dcsvm" nogil:
    void c_kernel_matrix "dcsvm::kernel_matrix"(
        const KernelSetup&, const RowList&, const RowList&, int, float*) except +
    void c_sparse_sums "dcsvm::sparse_sums"(
        const double*, const SourceWeights&, const int32_t*, const int32_t*, size_t, int,
        double*) except +


cdef extern from "kernel/sign_sums.h" namespace "dcsvm" nogil:
    void c_sign_sums "dcsvm::sign_sums"(
        const float*, size_t, const float*, size_t, size_t, const float*, float*) except +


cdef extern from "kernel/kernel_kmeans.h" namespace "dcsvm" nogil:
    cdef cppclass NodeSamples:
        RowList rows
        const int64_t* start
        size_t n_nodes

    void c_kernel_kmeans "dcsvm::kernel_kmeans"(
        const KernelSetup&, const NodeSamples&, const int32_t*, uint64_t, int,
        int32_t*) except +
    void c_mean_products "dcsvm::mean_products"(
        const KernelSetup&, const NodeSamples&, const int32_t*, const int64_t*, int,
        double*) except +


cdef extern from "kernel/routing.h" namespace "dcsvm" nogil:
    cdef cppclass NodeSplit:
        NodeSamples samples
        const int32_t* part
        const int64_t* first_child
        const int64_t* block_start
        const double* products

    cdef struct AssignmentArrays:
        int32_t* nearest
        int32_t* second
        double* distance

    cbool c_route "dcsvm::route"(
        const KernelSetup&, const RowList&, const int32_t*, const NodeSplit&, Precision, int,
        const AssignmentArrays&, const CStop*) except +


cdef extern from "kernel/row_panels.h" namespace "dcsvm" nogil:
    size_t packed_row_bytes(const KernelSetup&, const CPoints&)


cdef extern from "kernel/single_row.h" namespace "dcsvm" nogil:
    cdef cppclass PackedSources:
        PackedSources(const KernelSetup&, const CPoints&, const CodedColumns*,
                      const SourceWeights&, Precision) except +

    cdef cppclass ClusterModels:
        size_t n_columns
        const int64_t* start
        const double* offsets
        double blend
        double largest_value

    cdef cppclass RoutingTree:
        RoutingTree(const KernelSetup&, const CPoints&, const CodedColumns*,
                   vector[NodeSplit]) except +

    cbool c_decision_values "dcsvm::decision_values"(
        const float*, size_t, const PackedSources&, const ClusterModels&, const RoutingTree*,
        double*) except +


cdef extern from "solver/box_qp.h" namespace "dcsvm" nogil:
    cdef struct BoxQP:
        size_t size
        const int32_t* row
        const double* linear
        const double* lower
        const double* upper
        const int8_t* constraint_of
        int n_constraints
        double violation_scale
        cbool divides_by_margin

    cdef cppclass Optimality:
        double objective
        double violation
        double gap
        double violation_scale
        vector[double] multipliers

    Optimality c_optimality "dcsvm::optimality"(const BoxQP&, const double*, const double*) except +


cdef extern from "solver/solve.h" namespace "dcsvm" nogil:
    cdef struct SolveProgress:
        double violation
        size_t n_active
        int64_t outer_steps

    cdef struct Limits:
        int64_t iterations

    cdef cppclass SolveOptions:
        double tolerance
        double attainable
        Precision precision
        Limits limits
        int n_threads
        double gradient_error
        CCutoff cutoff
        CStop* stop

    cdef enum class GradientState(unsigned char):
        unknown

    cdef cppclass Iterate:
        double* alpha
        double* gradient
        double* base
        GradientState* known

    size_t c_matrix_bytes "dcsvm::matrix_bytes"(size_t, Precision)
    size_t c_array_bytes "dcsvm::array_bytes"(size_t)

    cdef struct SolveReport:
        cbool finished
        cbool converged
        double violation
        double objective
        double gap
        double neglected
        int64_t iterations
        int64_t outer_steps
        int64_t newton_steps
        int64_t rebuilds
        int64_t kernel_evaluations
        int64_t pairs_skipped
        int64_t rows_computed
        int64_t rows_reused
        double seconds_tiles
        double seconds_inner
        double seconds_newton
        double seconds_selection
        double seconds_rebuild


cdef extern from "solver/cluster_solver.h" namespace "dcsvm" nogil:
    cdef struct Clusters:
        size_t n_clusters
        const int64_t* start
        const int32_t* members

    cdef struct ClusterProgress:
        size_t clusters_done
        size_t variables_done
        SolveProgress current

    cdef cppclass ClusterOptions:
        SolveOptions solve
        size_t memory_bytes

    cdef cppclass ClusterState:
        cbool is_done
        SolveReport report
        vector[uint8_t] snapshot

    void c_solve_clusters "dcsvm::solve_clusters"(
        const KernelSetup&, const CPoints&, const BoxQP&, const Clusters&, const Iterate&,
        const ClusterOptions&, vector[ClusterState]&) except +
    vector[uint8_t] c_bytes_of "dcsvm::bytes_of"(vector[ClusterState]&) except +
    vector[ClusterState] c_states_of "dcsvm::states_of"(const uint8_t*, size_t) except +


cdef extern from "solver/cluster_solver.h" namespace "dcsvm" nogil:
    void c_squared_spans "dcsvm::squared_spans"(
        const KernelSetup&, const CPoints&, const BoxQP&, const Clusters&, const double*,
        const uint8_t*, size_t, int, double*) except +


cdef extern from "solver/held_out_job.h" namespace "dcsvm" nogil:
    cdef cppclass HeldOutJob:
        size_t n_clusters
        size_t n_columns
        size_t n_folds
        Clusters parts
        const double* train_weight
        const int64_t* start
        const int32_t* rows

    cdef cppclass HeldOutOptions:
        vector[double] scales
        cbool is_classification
        cbool decides
        double tolerance
        size_t memory_bytes
        int n_threads
        const CStop* stop

    cdef struct HeldOutReport:
        int64_t missed
        int64_t support
        int64_t iterations

    vector[HeldOutReport] c_held_out_values "dcsvm::held_out_values"(
        const KernelSetup&, const CPoints&, const BoxQP&, const HeldOutJob&, const HeldOutOptions&,
        double*) except +
