#include "lrpc_call.h"

#include <array>
#include <optional>

#include "bench.client.h"
#include "core/store.h"
#include "lrpc/sealed.h"
#include "lrpc_domains.h"

namespace lrpc::bench {
namespace {

/// `Procedure` makes the call: it gets the client, and data for an argument.
template <class Procedure>
class LrpcCall final : public RoundTrips<LrpcCall<Procedure>> {
 public:
  LrpcCall(std::shared_ptr<LrpcDomains> domains, shim::Gate gate) : domains_(std::move(domains)), gate_(gate) {}

  Status connect() override {
    return store(client_, ::Bench::Client::import(LrpcDomains::kExportedName, domains_->import_options(gate_)));
  }

  /// The trap gate's client seals itself as late as possible, because the benchmark library reads files before the
  /// first block.
  void resume() override {
    if (gate_ != shim::Gate::trap || lrpc::detail::StubAccess::object(client_->binding()).sealed()) return;
    const Status sealed = seal(client_->binding(), {.allow = {"sched_setaffinity", "getrusage", "clock_gettime"}});
    if (!sealed) seal_failure_ = sealed.error();
  }

  /// The server's poller runs for a while after the last call; the floor must have the core to itself.
  void pause() override {
    if (gate_ == shim::Gate::trap) return;  // this gate has no poller
    wait_until_idle(domains_->server_pid(), std::chrono::microseconds(150), std::chrono::milliseconds(50));
  }

  void round_trip() noexcept { failures_.note(Procedure()(*client_, data_)); }

  [[nodiscard]] Status health() const override {
    if (seal_failure_.code != Errc::ok) return seal_failure_;
    return failures_.health();
  }

 private:
  std::shared_ptr<LrpcDomains> domains_;
  shim::Gate gate_;
  std::optional<::Bench::Client> client_;
  std::array<std::byte, 200> data_{};
  CallFailures failures_;
  Error seal_failure_;
};

}  // namespace

std::string_view name(LrpcTest test) noexcept {
  static constexpr std::array kNames{"Null", "Add", "BigIn", "BigIn-unint", "BigInOut"};
  static_assert(kNames.size() == std::size(kLrpcTests));
  return kNames[static_cast<std::size_t>(test)];
}

std::span<const shim::Gate> lrpc_gates() noexcept {
  static constexpr shim::Gate kGates[] = {shim::Gate::exchange, shim::Gate::handoff, shim::Gate::trap,
                                          shim::Gate::adaptive};
  return kGates;
}

Result<std::unique_ptr<Contender>> make_lrpc_call(const Seats& seats, shim::Gate gate, LrpcTest test) {
  auto domains = LrpcDomains::start(seats.server);
  if (!domains) return domains.error();
  return make_lrpc_call(std::shared_ptr<LrpcDomains>(std::move(*domains)), gate, test);
}

Result<std::unique_ptr<Contender>> make_lrpc_call(std::shared_ptr<LrpcDomains> domains, shim::Gate gate,
                                                  LrpcTest test) {
  const auto calls = [&](auto procedure) -> std::unique_ptr<Contender> {
    return std::make_unique<LrpcCall<decltype(procedure)>>(std::move(domains), gate);
  };
  switch (test) {
    case LrpcTest::null: return calls([](auto& client, auto&) { return client.Null(); });
    case LrpcTest::add: return calls([](auto& client, auto&) { return client.Add(20, 22); });
    case LrpcTest::big_in: return calls([](auto& client, auto& data) { return client.BigIn(data); });
    case LrpcTest::big_in_uninterpreted:
      return calls([](auto& client, auto& data) { return client.BigInUninterpreted(data); });
    case LrpcTest::big_in_out: return calls([](auto& client, auto& data) { return client.BigInOut(data); });
  }
  return std::unique_ptr<Contender>();
}

}  // namespace lrpc::bench
