#include "naive.h"
#include "plain_procedures.h"

namespace lrpc::bench {
namespace {

/// Keeps the compiler from optimising the call away.
template <class T>
void keep(T& value) noexcept {
  asm volatile("" : "+m"(value) : : "memory");
}

template <PlainProcedure Procedure>
class PlainCall final : public RoundTrips<PlainCall<Procedure>> {
 public:
  void round_trip() noexcept {
    if constexpr (Procedure == PlainProcedure::null) {
      plain_null();
      asm volatile("" : : : "memory");
    } else if constexpr (Procedure == PlainProcedure::add) {
      sum_ = plain_add(sum_, 1);
      keep(sum_);
    } else if constexpr (Procedure == PlainProcedure::big_in) {
      plain_big_in(data_);
      keep(data_);
    } else {
      plain_big_in_out(data_);
      keep(data_);
    }
  }

 private:
  std::int32_t sum_ = 0;
  Big data_{};
};

}  // namespace

std::unique_ptr<Contender> make_plain_call(PlainProcedure procedure) {
  switch (procedure) {
    case PlainProcedure::null: return std::make_unique<PlainCall<PlainProcedure::null>>();
    case PlainProcedure::add: return std::make_unique<PlainCall<PlainProcedure::add>>();
    case PlainProcedure::big_in: return std::make_unique<PlainCall<PlainProcedure::big_in>>();
    case PlainProcedure::big_in_out: return std::make_unique<PlainCall<PlainProcedure::big_in_out>>();
  }
  return nullptr;
}

}  // namespace lrpc::bench
