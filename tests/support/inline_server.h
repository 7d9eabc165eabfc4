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

/// Runs the server's half of one binding's calls in the thread that makes the calls. For a client with Gate::none,
/// whose calls nobody else serves. One thread at a time; a procedure may call the binding again. The calling thread's
/// stack must have room for what an E-stack runs. Destroy it after the last call, before the client and the Server.
class InlineServer {
 public:
  /// For a test that rings by itself. Precondition: the server has the binding.
  InlineServer(lrpc::Server& server, std::uint64_t binding)
      : served_(lrpc::detail::StubAccess::domain(server).bindings().find(binding)) {}
  /// From now on the calls of `client` are served in this way, too.
  InlineServer(lrpc::Server& server, const lrpc::Binding& client)
      : InlineServer(server, lrpc::detail::StubAccess::object(client).id()) {
    lrpc::detail::StubAccess::object(client).set_inline_server({&serve_here, this});
  }
  InlineServer(const InlineServer&) = delete;
  InlineServer& operator=(const InlineServer&) = delete;
  /// Takes the lock that revoke() takes, so that the procedures' effects come before the rundown. Otherwise nothing
  /// orders them: the server hears of the client's end only through the kernel.
  ~InlineServer() { (void)served_->secondary(); }

  /// Serves the call on this A-stack, if one was rung.
  void serve(std::uint32_t astack) {
    if (busy_) {  // the procedure of an outer call still uses context_
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
