// The row of a procedure in the table of entry stubs.
#pragma once

#include <cstdint>

#include "lrpc/detail/server/call_context.h"
#include "lrpc/detail/shim/system/handover.h"

namespace lrpc::server {

#ifdef LRPC_THREAD_SANITIZER
/// Tells ThreadSanitizer the order that calls establish: the procedure sees what its caller did before the call; its
/// caller, and the thread that runs the binding's next call or its end, see what the procedure did.
class Handover {
 public:
  explicit Handover(const CallContext& context) noexcept
      : binding_(context.binding_id()), image_(detail::StubAccess::image(context)) {
    shim::take_over_call(binding_, image_);
  }
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;
  ~Handover() {
    shim::hand_over_call(binding_, image_);
    shim::hand_over_call(binding_, nullptr);
  }

 private:
  const std::uint64_t binding_;
  const std::byte* const image_;
};

template <EntryStub kStub>
std::uint16_t handed_over(void* impl, CallContext& context) {
  const Handover around(context);
  return kStub(impl, context);
}
template <EntryStub kStub>
inline constexpr EntryStub kEntry = &handed_over<kStub>;
#else
/// What the runtime enters for a generated stub: the stub itself.
template <EntryStub kStub>
inline constexpr EntryStub kEntry = kStub;
#endif

}  // namespace lrpc::server
