#include "wire_host.h"

#include <cstring>
#include <stdexcept>

#include "eventually.h"
#include "lrpc/netrpc/all_kinds.h"

namespace testing_wires {

using namespace lrpc::netrpc;
using namespace std::chrono_literals;

// GIVE_UP is replaced by the option's value.
const Stack kLayered{"Layered", "eth = ETH; ip = IP; wire = VIP over eth, ip;",
                     "fragment = FRAGMENT over spoiled; channel = CHANNEL(give_up = GIVE_UP) over fragment;"
                     "top = SELECT over channel;"};
const Stack kSizes{"VipSize", "eth = ETH; ip = IP; wire = VIPADDR over eth, ip;",
                   "fragment = FRAGMENT over spoiled; vipsize = VIPSIZE over spoiled, fragment;"
                   "channel = CHANNEL(give_up = GIVE_UP) over vipsize; top = SELECT over channel;"};
const Stack kMonolithic{"Monolithic", "eth = ETH; ip = IP; wire = VIP over eth, ip;",
                        "top = M_RPC(give_up = GIVE_UP) over spoiled;"};

std::string name_of(const ::testing::TestParamInfo<const Stack*>& stack) { return stack.param->name; }

namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string graph_of(const Stack& stack, const WireHostOptions& options) {
  std::string upper = replaced(stack.upper, "GIVE_UP", options.give_up);
  if (*options.fault == '\0') return stack.lower + replaced(upper, "spoiled", "wire");
  return stack.lower + std::string("spoiled = FAULT(") + options.fault + ") over wire;" + upper;
}

ParticipantSet participants(HostAddress local, HostAddress peer, std::uint16_t port = 0) {
  ParticipantSet set{.protocol = protocol_numbers::kFirstOfTests, .local = {}, .remote = {}};
  set.local.host = local;
  set.local.command = 1;
  set.remote.host = peer;
  set.remote.port = port;
  set.remote.command = 1;
  return set;
}

/// The byte at `at` of a request.
std::byte pattern(std::uint64_t number, std::size_t at) {
  if (at < sizeof number) return static_cast<std::byte>(number >> (8 * at));
  return static_cast<std::byte>(number * 31 + at * 7);
}

bool right(Message reply, HostAddress server, std::uint64_t number, std::size_t size) {
  if (reply.size() != sizeof server.value + size || !reply.flatten()) return false;
  const std::span<const std::byte> bytes = reply.bytes();
  if (std::memcmp(bytes.data(), &server.value, sizeof server.value) != 0) return false;
  for (std::size_t i = 0; i < size; ++i)
    if (bytes[sizeof server.value + i] != pattern(number, i)) return false;
  return true;
}

[[noreturn]] void fail(const std::string& why) { throw std::runtime_error(why); }

}  // namespace

std::string text(HostAddress address) {
  const std::uint32_t value = address.value;
  std::string text;
  for (const int shift : {24, 16, 8, 0}) text += std::to_string(value >> shift & 255) + (shift == 0 ? "/24" : ".");
  return text;
}

void Echo::call_demux(Session& lower, Message request) noexcept {
  const HostAddress own = host().address();
  ports_.insert(lower.participants().remote.port);
  std::uint64_t number = 0;
  if (request.size() >= sizeof number) {
    std::byte scratch[sizeof number];
    const std::byte* const popped = request.pop(sizeof number, scratch);
    std::memcpy(&number, popped, sizeof number);
    if (ledger_ != nullptr) ledger_->record(number);
    std::byte* const again = request.push(sizeof number);
    if (again == nullptr) return;  // the call fails, and so does the test
    std::memcpy(again, &number, sizeof number);
  }
  if (!request.allocated()) request = Message::make(host().pool(), 0);
  std::byte* const front = request.push(sizeof own.value);
  if (front == nullptr) return;
  std::memcpy(front, &own.value, sizeof own.value);
  lower.reply(std::move(request));
}

WireHost::WireHost(const Namespace& where, HostAddress address, const Stack& stack, const WireHostOptions& options)
    : where_(where) {
  auto engine = UringEngine::make();
  if (!engine) fail(engine.error().message());
  engine_ = std::move(*engine);
  HostOptions host;
  host.name = text(address);
  host.address = address;
  host_ = std::make_unique<Host>(host, clock_, *engine_);
  echo_ = std::make_unique<Echo>(*host_, options.ledger);
  const ProtocolKinds kinds = all_kinds();
  const auto description = GraphDescription::parse(graph_of(stack, options), kinds);
  if (!description) fail(description.error().message());
  std::string why;
  where_.run([&] {
    {
      const Shepherd inside(host_->monitor());
      auto composed = Graph::compose(*host_, *description, kinds);
      if (!composed) {
        why = composed.error().message();
        return;
      }
      graph_.emplace(std::move(*composed));
      const lrpc::Status enabled = graph_->find("top")->open_enable(*echo_, participants(address, {}));
      if (!enabled) why = enabled.error().message();
    }
    if (!why.empty()) return;
    if (const lrpc::Status started = engine_->start(*host_, 2); !started) why = started.error().message();
  });
  if (!why.empty()) {
    end();
    fail(why);
  }
}

WireHost::~WireHost() { end(); }

std::size_t WireHost::calling_ports() {
  const Shepherd inside(host_->monitor());
  return echo_->ports().size();
}

void WireHost::end() {
  engine_->stop();
  const Shepherd inside(host_->monitor());
  open_.clear();
  graph_.reset();
}

void WireHost::open(HostAddress server, std::uint16_t port) {
  where_.run([&] {
    const Shepherd inside(host_->monitor());
    for (const Open& one : open_)
      if (one.server == server) return;
    auto session = graph_->find("top")->open(*echo_, participants(host_->address(), server, port));
    ASSERT_TRUE(session) << session.error().message();
    open_.push_back({server, *session});
  });
}

Answer WireHost::call(HostAddress server, std::size_t size, std::uint64_t number) {
  Answer answer;
  where_.run([&] { answer = call_inside(server, size, number); });  // TCP makes its sockets in the thread that calls
  return answer;
}

Answer WireHost::call_inside(HostAddress server, std::size_t size, std::uint64_t number) {
  const Shepherd inside(host_->monitor());
  SessionRef session;
  for (const Open& one : open_)
    if (one.server == server) session = one.session;
  if (!session) return {Errc::invalid_argument, false};
  Message request = Message::make(host_->pool(), size);
  if (!request.allocated()) return {Errc::limit_reached, false};
  for (std::size_t i = 0; i < size; ++i) request.bytes()[i] = pattern(number, i);
  Message reply;
  const Errc outcome = call_and_wait_inside(*session, std::move(request), reply, 10min);
  return {outcome, outcome == Errc::ok && right(std::move(reply), server, number, size)};
}

control::Statistics WireHost::counted(std::string_view instance) {
  const Shepherd inside(host_->monitor());
  control::Request request = control::Statistics{};
  Protocol* const protocol = graph_->find(instance);
  if (protocol == nullptr || protocol->control(request) != Errc::ok) {
    ADD_FAILURE() << instance << " has no statistics";
    return {};
  }
  return std::get<control::Statistics>(request);
}

std::uint64_t over_ip(std::initializer_list<WireHost*> hosts) {
  std::uint64_t packets = 0;
  for (WireHost* const host : hosts) packets += host->counted("ip").sent + host->counted("ip").received;
  return packets;
}

void call_until_over_ethernet(WireHost& client, HostAddress server, std::initializer_list<WireHost*> hosts) {
  EXPECT_TRUE(testing_lrpc::eventually([&] {
    const std::uint64_t before = over_ip(hosts);
    return client.call(server, 0, 0).outcome == Errc::ok && over_ip(hosts) == before;
  }));
}

}  // namespace testing_wires
