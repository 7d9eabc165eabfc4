// The trap gate, the client's half of steps 4 and 5.
#include <cerrno>

#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/trap/trap.h"
#include "transfer.h"

namespace lrpc::client {
std::uint16_t transfer_trap(BindingObject& binding, shim::LinkageRecord& linkage, shim::CallWord called,
                            bool rung) noexcept {
  if (!binding.sealed()) {  // nobody listens yet, see lrpc::seal()
    if (!rung) linkage.take_back();
    linkage.quarantined = rung;
    return failed(Errc::not_supported);
  }
  shim::AStackHead& head = *linkage.astack.head;
  // 4 · ring: a plain store (T1) is enough, nobody sleeps on the word. The trap tells the server.
  if (!rung) shim::ring_exchange(head, called);
  const shim::TrapRegisters registers{.binding = shim::in_registers(binding.nonce()),
                                      .procedure = called.procedure(),
                                      .astack = linkage.index,
                                      .generation = linkage.generation()};
  for (;;) {
    LRPC_STEP("client 5 trap");
    // 5 · wait: in the kernel.
    const long outcome = shim::trap(registers);
    const shim::CallWord word = shim::load_word(head);
    if (word.is(shim::Turn::returned, linkage.generation())) return word.status();
    // According to the kernel, a signal came before the server had seen the trap. If the server has claimed the call
    // nevertheless, the second trap finds its generation used, so the call is executed once.
    if (outcome == -EINTR && !word.revoked()) continue;
    // The server closed its listener, refused, or answered without returning: no further call is trusted to it.
    linkage.quarantined = true;
    binding.revoke();
    return failed(Errc::call_failed);
  }
}

}  // namespace lrpc::client
