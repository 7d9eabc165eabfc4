// Both halves of a call in one thread, for tests and instruction counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "call/call_path.h"
#include "clerk/domain.h"
#include "clerk/secondary_regions.h"
#include "lrpc/detail/client/import/binding.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/binder/growth.h"

namespace testing_lrpc {

/// Runs the server's half of one binding's calls in the thread that makes them. For a client with Gate::none, whose
/// calls nobody else serves. One thread at a time; a procedure may call the binding again. The calling thread's stack
/// must have room for what runs on an E-stack otherwise. Goes after the last call, before the client and the Server.
class InlineServer {
 public:
  /// For who rings by itself. Precondition: the server has the binding.
  InlineServer(lrpc::Server& server, std::uint64_t binding)
      : served_(lrpc::detail::StubAccess::domain(server).bindings().find(binding)) {}
  /// From now on the calls of `client`, too, are served so.
  InlineServer(lrpc::Server& server, const lrpc::Binding& client)
      : InlineServer(server, lrpc::detail::StubAccess::object(client).id()) {
    lrpc::detail::StubAccess::object(client).set_inline_server({&serve_here, this});
  }
  InlineServer(const InlineServer&) = delete;
  InlineServer& operator=(const InlineServer&) = delete;
  /// Takes the lock that revoke() takes: what the procedures did comes before the rundown, although the server hears of
  /// the client's end through the kernel alone.
  ~InlineServer() { (void)served_->secondary(); }

  /// The call that has been rung on this A-stack, if one has.
  void serve(std::uint32_t astack) {
    if (busy_) {  // the procedure of an outer call still wants its context
      lrpc::server::PrimedContext context;
      return serve(astack, context);
    }
    busy_ = true;
    serve(astack, context_);
    busy_ = false;
  }
  [[nodiscard]] std::span<lrpc::server::ServedAStack> astacks() const { return served_->astacks(); }

 private:
  static void serve_here(void* self, std::uint32_t astack) { static_cast<InlineServer*>(self)->serve(astack); }
  void serve(std::uint32_t astack, lrpc::server::PrimedContext& context) {
    const std::size_t primary = served_->astacks().size();
    if (astack < primary) {
      (void)lrpc::server::serve(served_->astacks()[astack], context);
      return;
    }
    const std::size_t place = (astack - primary) / lrpc::shim::kMostAStacksInSecondary;
    const std::size_t within = (astack - primary) % lrpc::shim::kMostAStacksInSecondary;
    for (const auto& region : served_->secondary()) {
      if (region->place() == place && within < region->astacks().size())
        (void)lrpc::server::serve(region->astacks()[within], context);
    }
  }

  const std::shared_ptr<lrpc::server::ServedBinding> served_;
  lrpc::server::PrimedContext context_;
  bool busy_ = false;
};

}  // namespace testing_lrpc
