// A user process that is a protocol of this test's graph. The graph stands on UDP at a loopback address; the peers are
// plain sockets.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "eventually.h"
#include "lrpc/netrpc/all_kinds.h"
#include "lrpc/netrpc/user/served_users.h"
#include "lrpc/netrpc/user/user_process.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/test_support/asked.h"
#include "receive_patiently.h"
#include "user_calls.client.h"
#include "world.h"

namespace lrpc::netuser {
namespace {

using testing_lrpc::eventually;
using testing_lrpc::Process;

constexpr std::uint16_t kNumber = 245;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// The error that the graph's refusal names, or else the error of the call.
template <class Outcome>
Errc refused(const Outcome& outcome) {
  const auto* const why = outcome.template raised<UserCalls::Refused>();
  return why == nullptr ? outcome.code() : static_cast<Errc>(why->code);
}

class UserProcesses : public testing::Test {
 protected:
  UserProcesses() {
    // Not io_uring: it keeps a port busy for a while after its socket was closed.
    auto engine = netrpc::UringEngine::make(netrpc::EngineKind::epoll);
    if (!engine) throw std::runtime_error(engine.error().message());
    engine_ = std::move(*engine);
    netrpc::HostOptions options;
    options.short_of_memory = [this] { return short_of_memory_.load(); };
    host_ = std::make_unique<netrpc::Host>(std::move(options), clock_, *engine_);
    const netrpc::ProtocolKinds kinds = netrpc::all_kinds().add(user_kind());
    const auto description = netrpc::GraphDescription::parse(
        "udp = UDP(address = 127.77.0.1, ports = " + std::to_string(ports_) +
            ", peer_ports = any); user = USER(name = upcase, number = 245, largest = 100, sessions = 2, queue = 4) "
            "over udp;",
        kinds);
    if (!description) throw std::runtime_error(description.error().message());
    {
      const netrpc::Shepherd inside(host_->monitor());
      auto graph = netrpc::Graph::compose(*host_, *description, kinds);
      if (!graph) throw std::runtime_error(graph.error().message());
      graph_.emplace(std::move(*graph));
      user_ = dynamic_cast<UserObject*>(graph_->find("user"));
    }
    if (!engine_->start(*host_, 1)) throw std::runtime_error("the engine does not start");
    served_.emplace(ServerOptions{});
  }
  ~UserProcesses() override {
    served_.reset();
    engine_->stop();
    const netrpc::Shepherd inside(host_->monitor());
    graph_.reset();
  }

  /// The process's end of a new private socket.
  UniqueFd socket() {
    auto pair = make_socket_pair();
    EXPECT_TRUE(pair);
    EXPECT_TRUE(served_->serve_over(*user_, std::move(pair->first)));
    return std::move(pair->second);
  }
  netrpc::control::Statistics statistics() {
    const netrpc::Shepherd inside(host_->monitor());
    return netrpc::test::asked<netrpc::control::Statistics>(*user_);
  }
  std::size_t buffers_in_use() {
    const netrpc::Shepherd inside(host_->monitor());
    return host_->pool().in_use();
  }

  /// A peer with its own port.
  class Peer {
   public:
    explicit Peer(const UserProcesses& test) : fd_(::socket(AF_INET, SOCK_DGRAM, 0)) {
      sockaddr_in there{};
      there.sin_family = AF_INET;
      there.sin_port = htons(static_cast<std::uint16_t>(test.ports_ + kNumber));
      ::inet_pton(AF_INET, "127.77.0.1", &there.sin_addr);
      EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
    }
    void send(const std::string& text) const {
      EXPECT_EQ(::send(fd_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    }
    [[nodiscard]] std::string receive() const {
      std::array<char, 200> buffer;
      const ssize_t size = testing_lrpc::receive_patiently(fd_.get(), buffer);
      return size < 0 ? "nothing" : std::string(buffer.data(), static_cast<std::size_t>(size));
    }
    [[nodiscard]] std::string asked(const std::string& text) const {
      send(text);
      return receive();
    }

   private:
    UniqueFd fd_;
  };

  std::atomic<bool> short_of_memory_ = false;
  const int ports_ = 20'000 + ::getpid() % 40'000;
  netrpc::MonotonicClock clock_;
  std::unique_ptr<netrpc::UringEngine> engine_;
  std::unique_ptr<netrpc::Host> host_;
  std::optional<netrpc::Graph> graph_;
  UserObject* user_ = nullptr;
  std::optional<ServedUsers> served_;
};

TEST_F(UserProcesses, a_process_is_a_protocol_and_another_takes_its_place_when_it_has_died) {
  UniqueFd end = socket();
  Process upcase({UPCASE, std::to_string(end.get())}, {end.get()});
  end = {};
  const Peer one(*this);
  const Peer other(*this);
  EXPECT_EQ(one.asked("hello"), "HELLO");
  EXPECT_EQ(other.asked("to another session"), "TO ANOTHER SESSION");
  EXPECT_EQ(statistics().sessions, 2U);
  EXPECT_EQ(UserProcess::create_over(socket(), {}).code(), Errc::name_taken);

  upcase.kill_and_wait();
  EXPECT_TRUE(eventually([&] { return statistics().sessions == 0; }));
  std::atomic<bool> opened = false;
  UserProcess::Options options;
  options.receive = [&](UserProcess& self, const UserProcess::Arrived& arrived) {
    opened = arrived.opened;
    EXPECT_EQ(arrived.host, 0x7f00'0001U);
    EXPECT_TRUE(self.push(arrived.session, bytes_of("I am new")));
  };
  auto next = UserProcess::create_over(socket(), options);
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_EQ((*next)->largest(), 100U);
  ASSERT_TRUE((*next)->enable());
  EXPECT_EQ(one.asked("who is there?"), "I am new");
  EXPECT_TRUE(opened);
  EXPECT_EQ(one.asked("and now?"), "I am new");
  EXPECT_FALSE(opened);
  next->reset();
  EXPECT_EQ(statistics().sessions, 0U);
  EXPECT_TRUE(eventually([&] { return buffers_in_use() == 0; }));
}

TEST_F(UserProcesses, a_process_that_asks_for_more_than_its_line_allows_is_refused) {
  auto client = UserCalls::Client::import_over(socket());
  ASSERT_TRUE(client);
  EXPECT_EQ(refused(client->Enable(UserCalls::Protocol{7}, true)), Errc::bad_handle);
  const auto created = client->CreateProtocol();
  ASSERT_TRUE(created);
  const UserCalls::Protocol user = created->protocol;
  EXPECT_EQ(refused(client->CreateProtocol()), Errc::name_taken);
  const std::string text(101, 'a');
  EXPECT_EQ(refused(client->Push(user, 1, bytes_of("to nobody"))), Errc::invalid_argument);
  EXPECT_EQ(refused(client->Sizes(user, 1)), Errc::invalid_argument);
  const auto session = client->Open(user, 0x7f4d'0002, 4000);
  ASSERT_TRUE(session);
  EXPECT_EQ(*client->Open(user, 0x7f4d'0002, 4000), *session);  // the session is kept
  EXPECT_EQ(refused(client->Push(user, *session, bytes_of(text))), Errc::message_too_long);
  EXPECT_EQ(client->Sizes(user, *session)->largest, 100U);
  ASSERT_TRUE(client->Open(user, 0x7f4d'0002, 4001));
  EXPECT_EQ(refused(client->Open(user, 0x7f4d'0002, 4002)), Errc::limit_reached);
  ASSERT_TRUE(client->CloseSession(user, *session));
  EXPECT_EQ(refused(client->Push(user, *session, bytes_of("closed"))), Errc::invalid_argument);
  ASSERT_TRUE(client->Close(user));
  EXPECT_EQ(refused(client->Enable(user, true)), Errc::bad_handle);
}

TEST_F(UserProcesses, a_process_that_takes_no_messages_costs_the_graph_a_short_queue_and_few_sessions) {
  auto client = UserCalls::Client::import_over(socket());
  ASSERT_TRUE(client);
  const auto created = client->CreateProtocol();
  ASSERT_TRUE(created);
  ASSERT_TRUE(client->Enable(created->protocol, true));
  std::vector<Peer> peers;
  for (int i = 0; i < 4; ++i) {
    peers.emplace_back(*this).send(std::to_string(i));
    EXPECT_TRUE(eventually([&] { return statistics().received == static_cast<unsigned>(i) + 1; }));
  }
  for (int i = 0; i < 3; ++i) peers.front().send("too many");
  EXPECT_TRUE(eventually([&] { return statistics().refused == 3; }));
  EXPECT_EQ(statistics().sessions, 2U);
  std::array<std::byte, 100> memory;
  for (unsigned i = 0; i < 4; ++i) {
    Buffer message(memory);
    const auto arrived = client->Await(created->protocol, message);
    ASSERT_TRUE(arrived);
    EXPECT_TRUE(arrived->opened);
    EXPECT_EQ(std::to_integer<int>(memory[0]), '0' + static_cast<int>(i));
    // The sessions of the first two peers have been evicted.
    EXPECT_EQ(client->Push(created->protocol, arrived->session, message.contents()).has_value(), i >= 2);
  }
  EXPECT_EQ(peers[2].receive(), "2");
}

TEST_F(UserProcesses, a_process_that_waits_hears_of_the_end_of_the_graph) {
  std::atomic<int> lost = 0;
  UserProcess::Options options;
  options.threads = 3;
  options.lost = [&](const Error& /*why*/) { ++lost; };
  auto process = UserProcess::create_over(socket(), options);
  ASSERT_TRUE(process);
  served_.reset();
  EXPECT_TRUE(eventually([&] { return lost == 3; }));
  EXPECT_FALSE((*process)->enable());
}

TEST_F(UserProcesses, a_process_goes_on_receiving_after_a_call_timeout) {
  std::atomic<int> received = 0;
  std::atomic<int> lost = 0;
  UserProcess::Options options;
  options.binding.call_timeout = std::chrono::milliseconds(100);
  options.receive = [&](UserProcess& /*self*/, const UserProcess::Arrived& /*arrived*/) { ++received; };
  options.lost = [&](const Error& /*why*/) { ++lost; };
  std::unique_ptr<UserProcess> process;
  // On a busy machine these calls may take longer than the timeout: try again.
  EXPECT_TRUE(eventually([&] {
    auto created = UserProcess::create_over(socket(), options);
    if (created) process = std::move(*created);
    return process != nullptr;
  }));
  ASSERT_NE(process, nullptr);
  EXPECT_TRUE(eventually([&] { return process->enable().has_value(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // by now some Await call has timed out
  const Peer peer(*this);
  EXPECT_TRUE(eventually([&] {
    peer.send("are you there?");
    return received > 0;
  }));
  EXPECT_EQ(lost, 0);
}

TEST_F(UserProcesses, a_process_can_be_destroyed_in_a_scope_that_is_over) {
  std::unique_ptr<UserProcess> process;
  {
    auto created = UserProcess::create_over(socket(), {});
    ASSERT_TRUE(created);
    process = std::move(*created);
  }
  const CallScope over(std::chrono::seconds(0));
  process.reset();  // blocks for ever if Close is not called
  EXPECT_EQ(statistics().sessions, 0U);
}

TEST_F(UserProcesses, nobody_becomes_the_protocol_once_it_stops) {
  auto first = UserCalls::Client::import_over(socket());
  auto second = UserCalls::Client::import_over(socket());
  ASSERT_TRUE(first && second);
  const auto created = first->CreateProtocol();
  ASSERT_TRUE(created);
  served_->stop();
  std::array<std::byte, 100> memory;
  Buffer message(memory);
  EXPECT_EQ(refused(first->Await(created->protocol, message)), Errc::call_cancelled);
  EXPECT_EQ(refused(second->CreateProtocol()), Errc::call_cancelled);
  EXPECT_EQ(refused(first->CreateProtocol()), Errc::call_cancelled);
}

TEST_F(UserProcesses, begins_nothing_for_a_process_when_there_is_no_memory) {
  auto client = UserCalls::Client::import_over(socket());
  ASSERT_TRUE(client);
  short_of_memory_ = true;
  EXPECT_EQ(refused(client->CreateProtocol()), Errc::limit_reached);
  short_of_memory_ = false;
  const auto created = client->CreateProtocol();
  ASSERT_TRUE(created);
  ASSERT_TRUE(client->Enable(created->protocol, true));
  const auto session = client->Open(created->protocol, 0x7f4d'0002, 4000);
  ASSERT_TRUE(session);
  const Peer known(*this);
  known.send("before");
  EXPECT_TRUE(eventually([&] { return statistics().received == 1; }));
  short_of_memory_ = true;
  EXPECT_EQ(refused(client->Open(created->protocol, 0x7f4d'0002, 4001)), Errc::limit_reached);
  known.send("dropped");
  EXPECT_TRUE(eventually([&] { return statistics().refused == 1; }));
  EXPECT_EQ(statistics().received, 1U);
  EXPECT_TRUE(client->Push(created->protocol, *session, bytes_of("it goes on")));
}

/// Two threads wait. The message wakes one that has stopped waiting meanwhile.
TEST_F(UserProcesses, who_waits_and_takes_nothing_leaves_the_message_to_another) {
  const auto inside = [&](auto what) {
    const netrpc::Shepherd shepherd(host_->monitor());
    return what();
  };
  ASSERT_TRUE(inside([&] { return user_->attach(); }));
  inside([&] { user_->want(true); });
  (void)inside([&] { return user_->going_to_wait(); });
  Peer(*this).send("hello");
  EXPECT_TRUE(eventually([&] { return statistics().received == 1; }));
  const std::uint32_t other = inside([&] { return user_->going_to_wait(); });
  inside([&] {
    user_->stopped_waiting();
    user_->wake_another();
  });
  user_->wait(other, std::chrono::nanoseconds(-1));  // blocks for ever if no thread was woken
  inside([&] {
    Upcall upcall;
    user_->stopped_waiting();
    EXPECT_TRUE(user_->take(upcall));
    user_->detach();
  });
}

}  // namespace
}  // namespace lrpc::netuser
