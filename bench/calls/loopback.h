// Both halves of a call in one thread (gate `none`): the client's stub, the call word, the check ladder and the
// server's stub, without a transfer. This is the part of a call that does not depend on crossing.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "inline_server.h"
#include "lrpc/client.h"
#include "lrpc/server.h"

namespace lrpc::bench {

/// A private binding of this process to itself. `Client` is a generated client class, `Impl` implements the procedures,
/// and `serve` is a function that calls the generated serve_over() for them. Not movable; use it on one thread.
template <class Client, class Impl>
class Loopback {
 public:
  template <class Serve>
  static Result<std::unique_ptr<Loopback>> create(Serve&& serve, std::chrono::milliseconds call_timeout = kNoLimit) {
    auto pair = shim::make_socket_pair();
    if (!pair) return pair.error();
    std::unique_ptr<Loopback> loopback(new Loopback);
    if (auto serving = serve(loopback->server_, std::move(pair->first), loopback->impl_); !serving)
      return serving.error();
    auto client = Client::import_over(std::move(pair->second), {.gate = Gate::none, .call_timeout = call_timeout});
    if (!client) return client.error();
    loopback->client_ = std::make_unique<Client>(std::move(*client));
    loopback->inline_.emplace(loopback->server_, loopback->client_->binding());
    return loopback;
  }

  [[nodiscard]] Client& client() noexcept { return *client_; }
  [[nodiscard]] client::BindingObject& binding() noexcept {
    return lrpc::detail::StubAccess::object(client_->binding());
  }
  [[nodiscard]] Impl& impl() noexcept { return impl_; }
  /// The server's half of the binding.
  [[nodiscard]] std::span<server::ServedAStack> astacks() noexcept { return inline_->astacks(); }

 private:
  Loopback() : server_({.pollers = 0}) {}
  Impl impl_;
  Server server_;
  std::unique_ptr<Client> client_;
  std::optional<testing_lrpc::InlineServer> inline_;  // destroyed first
};

}  // namespace lrpc::bench
