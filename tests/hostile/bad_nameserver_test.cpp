// A server whose nameserver breaks the protocol: it must stay up, say what is wrong, and keep serving its clients.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <future>
#include <mutex>
#include <optional>

#include "bad_packets.h"
#include "bystander.h"
#include "conformance_service.h"
#include "length.h"
#include "lrpc/client.h"
#include "lrpc/detail/shim/binder/allocator_page.h"
#include "processor_time.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;
namespace shim = lrpc::shim;

/// A socket at which a server expects a nameserver.
class FalseNameserver {
 public:
  FalseNameserver()
      : path_((directory_.path() / "lrpcd.sock").string()),
        listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_.get(), 8) != 0) {
      throw std::runtime_error("FalseNameserver");
    }
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Accepts the next connection and receives its first message.
  shim::BinderMessage accept_one() {
    pollfd entry{listener_.get(), POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) <= 0) return {};
    connection_ = lrpc::UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return receive();
  }
  shim::BinderMessage receive() {
    auto received = shim::receive_message(connection_.get(), kPatience);
    if (!received || !received->has_value()) return {};
    return std::move(**received);
  }
  [[nodiscard]] int connection() const noexcept { return connection_.get(); }
  void hang_up() { connection_.reset(); }
  /// Hangs up, and stops listening.
  void leave() {
    hang_up();
    listener_.reset();
  }
  /// Waits until the other side hangs up. True if it does.
  [[nodiscard]] bool hung_up_on() {
    std::array<std::byte, 1024> rest{};
    ssize_t got = 0;
    while ((got = recv(connection_.get(), rest.data(), rest.size(), 0)) > 0) continue;
    return got == 0 || errno == ECONNRESET;
  }

 private:
  TemporaryDirectory directory_;
  std::string path_;
  lrpc::UniqueFd listener_;
  lrpc::UniqueFd connection_;
};

class BadNameserver : public testing::Test {
 protected:
  void SetUp() override {
    auto ends = shim::make_socket_pair();
    ASSERT_TRUE(ends);
    ASSERT_TRUE(Conformance::serve_over(server_, std::move(ends->first), service_));
    auto client = Conformance::Client::import_over(std::move(ends->second));
    ASSERT_TRUE(client) << client.error().message();
    bystander_ = std::make_unique<Bystander>(*std::move(client));
    before_ = open_descriptors();
  }
  void TearDown() override {
    if (bystander_ == nullptr) return;
    bystander_->call(50);
    nameserver_.leave();
    if (exported_) {
      EXPECT_TRUE(server_.withdraw(*exported_));
    }
    const std::size_t without_listener = before_ - 1;
    EXPECT_TRUE(eventually([&] { return open_descriptors() <= without_listener; }))
        << without_listener << " were open, now " << open_descriptors();
    EXPECT_EQ(server_.statistics().bindings, 1U);
  }
  /// Exports, while the false nameserver answers the request as `answer` does.
  template <class Answer>
  lrpc::Result<lrpc::ExportId> export_and(Answer&& answer) {
    std::optional<lrpc::Result<lrpc::ExportId>> exported;
    std::thread exporter([&] { exported.emplace(Conformance::export_to(server_, "name", service_, options_)); });
    const shim::BinderMessage request = nameserver_.accept_one();
    EXPECT_TRUE(std::holds_alternative<shim::ExportRequest>(request.body));
    answer(request.request);
    exporter.join();
    return *exported;
  }
  void export_well() {
    const auto exported = export_and([&](std::uint32_t request) {
      EXPECT_TRUE(shim::send_message(nameserver_.connection(), {request, shim::Exported{kExport}, {}, {}}));
    });
    ASSERT_TRUE(exported) << exported.error().message();
    exported_ = *exported;
  }
  /// Expects what the server does by itself after any hang-up: it connects and exports again.
  void expect_the_name_back() {
    const shim::BinderMessage request = nameserver_.accept_one();
    const auto* again = std::get_if<shim::ExportRequest>(&request.body);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(again->name, "name");
    EXPECT_TRUE(shim::send_message(nameserver_.connection(), {request.request, shim::Exported{kExport}, {}, {}}));
    EXPECT_EQ(reply_to(bind_request(), {}).code, Errc::bad_message) << "known, but without descriptors";
  }
  /// The clerk's reply to a bind request with these descriptors.
  shim::BindReply reply_to(const shim::BindRequest& request, std::span<const int> fds) {
    EXPECT_TRUE(send_packet(nameserver_.connection(), encoded({5, request, {}, {}}), fds));
    const shim::BinderMessage message = nameserver_.receive();
    const auto* reply = std::get_if<shim::BindReply>(&message.body);
    EXPECT_NE(reply, nullptr);
    return reply != nullptr ? *reply : shim::BindReply{};
  }
  static shim::BindRequest bind_request() {
    return {.export_id = kExport, .binding_id = 77, .nonce = {}, .client = {}, .gate = {}};
  }

  static constexpr std::uint64_t kExport = 4711;
  FalseNameserver nameserver_;
  lrpc::Server server_{{.nameserver = nameserver_.path()}};
  ConformanceService service_{&server_};
  lrpc::ExportOptions options_;  ///< For the export.
  std::unique_ptr<Bystander> bystander_;
  std::optional<lrpc::ExportId> exported_;
  std::size_t before_ = 0;
};

TEST_F(BadNameserver, that_answers_an_export_with_garbage_gets_a_hang_up_and_the_program_an_error) {
  Random random(test_seed());
  for (const Packet& packet : undecodable_packets(random, encoded({1, shim::Exported{1}, {}, {}}))) {
    const auto exported = export_and([&](std::uint32_t) {
      ASSERT_TRUE(send_packet(nameserver_.connection(), packet));
      EXPECT_TRUE(nameserver_.hung_up_on());
    });
    EXPECT_EQ(exported.code(), Errc::bad_message) << exported.error().message();
  }
  const auto another = export_and([&](std::uint32_t request) {
    ASSERT_TRUE(
        send_packet(nameserver_.connection(), of_another_version(encoded({request, shim::Exported{1}, {}, {}}))));
  });
  EXPECT_NE(another.error().text.find("version 9"), std::string::npos) << another.error().text;
}

TEST_F(BadNameserver, that_answers_an_export_with_something_else_is_a_bad_message) {
  for (const shim::BinderBody& body :
       std::vector<shim::BinderBody>{shim::Withdrawn{}, shim::Bound{}, shim::Listed{}, import_request("x").body}) {
    const auto exported = export_and([&](std::uint32_t request) {
      ASSERT_TRUE(send_packet(nameserver_.connection(), encoded({request + 1, body, {}, {}})));  // not asked for
      ASSERT_TRUE(send_packet(nameserver_.connection(), encoded({request, body, {}, {}}),
                              std::array{STDERR_FILENO, STDERR_FILENO}));
    });
    EXPECT_EQ(exported.code(), Errc::bad_message);
    nameserver_.hang_up();
    // The next export connects again once the server has seen the hang-up.
    EXPECT_TRUE(eventually([&] { return open_descriptors() <= before_; }));
  }
}

TEST_F(BadNameserver, that_sends_bind_requests_with_the_wrong_descriptors_gets_refusals) {
  export_well();
  for (std::size_t count = 0; count <= shim::kMaxBinderFds; ++count) {
    const std::vector<int> fds(count, STDERR_FILENO);
    const auto reply = reply_to(bind_request(), fds);
    EXPECT_EQ(reply.code, Errc::bad_message) << count << " descriptors: " << reply.text;
    EXPECT_EQ(reply.binding_id, 77U);
    EXPECT_FALSE(reply.text.empty());
  }
  auto pidfd = shim::open_pidfd(getpid());
  auto bell = shim::make_socket_pair();
  ASSERT_TRUE(pidfd && bell);
  for (const Descriptor& wrong : not_regions()) {
    const lrpc::UniqueFd region = wrong.make();
    const auto reply = reply_to(bind_request(), std::array{region.get(), pidfd->get(), bell->first.get()});
    EXPECT_TRUE(reply.code == Errc::bad_message || reply.code == Errc::system_error)
        << wrong.name << ": " << reply.text;
  }
  const lrpc::UniqueFd region = good_region();
  shim::BindRequest unknown = bind_request();
  unknown.export_id = 1;
  EXPECT_EQ(reply_to(unknown, std::array{region.get(), pidfd->get(), bell->first.get()}).code, Errc::name_unknown);
  EXPECT_EQ(server_.statistics().bindings, 1U);
}

TEST_F(BadNameserver, that_sends_no_bell_or_no_client_costs_no_processor_time_and_no_binding) {
  export_well();
  const lrpc::UniqueFd region = good_region();
  auto pidfd = shim::open_pidfd(getpid());
  auto bell = shim::make_socket_pair();
  ASSERT_TRUE(pidfd && bell);
  for (const Descriptor& wrong : not_bells()) {
    const lrpc::UniqueFd fd = wrong.make();
    (void)reply_to(bind_request(), std::array{region.get(), pidfd->get(), fd.get()});
    (void)reply_to(bind_request(), std::array{region.get(), fd.get(), bell->first.get()});
  }
  bell->second.reset();
  bystander_->call(50);
  const auto used = processor_time(CLOCK_PROCESS_CPUTIME_ID);
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(processor_time(CLOCK_PROCESS_CPUTIME_ID) - used, 100ms) << "somebody spins";
  EXPECT_TRUE(eventually([&] { return server_.statistics().bindings == 1; })) << server_.statistics().bindings;
}

TEST_F(BadNameserver, that_floods_and_hangs_up_finds_the_name_offered_again) {
  export_well();
  Random random(test_seed());
  const lrpc::UniqueFd region = good_region();
  auto pidfd = shim::open_pidfd(getpid());
  auto bell = shim::make_socket_pair();
  ASSERT_TRUE(pidfd && bell);
  const std::array<int, 3> fds{region.get(), pidfd->get(), bell->first.get()};
  for (int i = 0; i < 200; ++i) {
    if (!send_packet(nameserver_.connection(), with_flipped_bits(random, encoded({5, bind_request(), {}, {}})), fds))
      break;
    std::array<std::byte, 2048> reply{};
    while (recv(nameserver_.connection(), reply.data(), reply.size(), MSG_DONTWAIT) > 0) continue;
  }
  nameserver_.hang_up();
  bell->first.reset();
  bell->second.reset();
  EXPECT_TRUE(eventually([&] { return server_.statistics().bindings == 1; })) << server_.statistics().bindings;
  bystander_->call(100);
  expect_the_name_back();
}

TEST_F(BadNameserver, that_does_not_read_for_a_while_gets_every_answer_later_and_nobody_waits_for_it) {
  export_well();
  // More answers than fit into the socket, but no more than the clerk queues in addition.
  auto twin = shim::make_socket_pair();
  ASSERT_TRUE(twin);
  std::uint64_t room = 0;
  while (shim::send_message(twin->first.get(), {1, shim::BindReply{1, Errc::bad_message, std::string(40, 'x')}, {}, {}},
                            lrpc::kDoNotWait))
    ++room;
  const std::uint64_t asked = room + 40;
  for (std::uint64_t i = 1; i <= asked; ++i) {
    shim::BindRequest request = bind_request();
    request.binding_id = i;
    ASSERT_TRUE(shim::send_message(nameserver_.connection(), {1, request, {}, {}}));
  }
  bystander_->call(200);
  auto ends = shim::make_socket_pair();
  ASSERT_TRUE(ends && Conformance::serve_over(server_, std::move(ends->first), service_));
  ASSERT_TRUE(Conformance::Client::import_over(std::move(ends->second)));
  for (std::uint64_t i = 1; i <= asked; ++i) {
    const auto message = nameserver_.receive();
    const auto* reply = std::get_if<shim::BindReply>(&message.body);
    ASSERT_NE(reply, nullptr) << i << " of " << asked;
    EXPECT_EQ(reply->binding_id, i);
  }
  EXPECT_TRUE(eventually([&] { return server_.statistics().bindings == 1; }));
}

TEST_F(BadNameserver, that_has_sent_many_requests_is_heard_many_at_a_time_and_after_what_ended_before) {
  std::promise<void> inside;
  std::promise<void> go_on;
  std::mutex mutex;
  std::string order;  // guarded by the mutex
  const auto note = [&](const char* what) {
    const std::lock_guard lock(mutex);
    return order += what;
  };
  options_.authorise = [&](const shim::ClientCredentials&) -> lrpc::Status {
    if (note("bind ") == "bind bind ") inside.set_value(), go_on.get_future().get();
    return {};
  };
  std::atomic<int> over{0};
  options_.on_unbound = [&](std::uint64_t) { note("end "), ++over; };
  export_well();
  std::atomic<std::size_t> replies{0};
  std::array<std::byte, 2048> reply{};
  lrpc::ExportOptions refusing;
  refusing.authorise = [&](const shim::ClientCredentials&) -> lrpc::Status {
    while (recv(nameserver_.connection(), reply.data(), reply.size(), MSG_DONTWAIT) > 0) ++replies;
    return Errc::not_permitted;
  };
  auto ends = shim::make_socket_pair();
  ASSERT_TRUE(ends && Conformance::serve_over(server_, std::move(ends->first), service_, refusing));
  const lrpc::UniqueFd region = good_region();
  auto pidfd = shim::open_pidfd(getpid());
  auto ended = shim::make_socket_pair();
  auto bell = shim::make_socket_pair();
  ASSERT_TRUE(pidfd && ended && bell);
  const auto ask = [&](std::span<const int> fds) {
    ASSERT_TRUE(send_packet(nameserver_.connection(), encoded({5, bind_request(), {}, {}}), fds));
  };
  ASSERT_EQ(reply_to(bind_request(), std::array{region.get(), pidfd->get(), ended->first.get()}).code, Errc::ok);
  ask(std::array{region.get(), pidfd->get(), bell->first.get()});
  inside.get_future().get();
  ended->second.reset();  // the next binding may need its place
  ask(std::array{region.get(), pidfd->get(), bell->first.get()});
  for (int i = 0; i < 20; ++i) ask({});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(shim::send_message(ends->second.get(), import_request("")));
  go_on.set_value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(shim::receive_message(ends->second.get(), kPatience));
  EXPECT_EQ(replies.load(), 22U);
  EXPECT_EQ(note("").substr(0, 19), "bind bind end bind ");
  bell->second.reset();
  EXPECT_TRUE(eventually([&] { return over == 3; })) << over;
}

TEST_F(BadNameserver, that_turns_to_garbage_later_is_left_for_a_new_connection) {
  export_well();
  Random random(test_seed());
  const auto packets = undecodable_packets(random, encoded({1, shim::Exported{1}, {}, {}}));
  // The server pauses before it connects again, so the short form takes a third of the packets.
  const std::size_t step = long_tests() ? 1 : 3;
  for (std::size_t i = test_seed() % step; i < packets.size(); i += step) {
    ASSERT_TRUE(send_packet(nameserver_.connection(), packets[i]));
    EXPECT_TRUE(nameserver_.hung_up_on());
    expect_the_name_back();
  }
}

TEST_F(BadNameserver, that_sends_pages_that_are_none_leaves_the_server_to_its_own_rule) {
  export_well();
  const auto send_page = [&](std::span<const int> fds) {
    ASSERT_TRUE(send_packet(nameserver_.connection(), encoded({0, shim::PollerPage{}, {}, {}}), fds));
    EXPECT_EQ(reply_to(bind_request(), {}).code, Errc::bad_message) << "it has come past the page";
  };
  for (const Descriptor& wrong : not_regions()) {
    const lrpc::UniqueFd fd = wrong.make();
    send_page(std::array{fd.get()});
    EXPECT_FALSE(server_.statistics().allocator_page) << wrong.name;
  }
  auto page = shim::create_allocator_page();
  ASSERT_TRUE(page);
  send_page({});
  send_page(std::array{page->get(), page->get()});
  EXPECT_FALSE(server_.statistics().allocator_page);
  EXPECT_EQ(server_.statistics().granted_pollers, lrpc::ServerOptions{}.pollers);

  shim::AllocatorPageMapping own;
  ASSERT_TRUE(own.put(lrpc::UniqueFd(dup(page->get()))));
  send_page(std::array{page->get()});
  EXPECT_TRUE(server_.statistics().allocator_page);
  own->ruling.word.store(shim::AllocatorRuling::of(0));
  EXPECT_EQ(server_.statistics().granted_pollers, 0U);
  Random random(test_seed());
  for (int i = 0; i < 200; ++i) {
    own->ruling.word.store(static_cast<std::uint32_t>(random()));
    own->ruling.epoch.store(static_cast<std::uint32_t>(random()));
    bystander_->call(3);
    EXPECT_LE(server_.statistics().granted_pollers, lrpc::ServerOptions{}.pollers)
        << "never more than it is ready to have";
  }
  nameserver_.hang_up();
  EXPECT_TRUE(eventually([&] { return !server_.statistics().allocator_page; }));
  EXPECT_EQ(server_.statistics().granted_pollers, lrpc::ServerOptions{}.pollers);
  expect_the_name_back();
}

/// The same socket for a client, which expects a nameserver's answer to an import.
TEST(FalseNameserverOfAClient, makes_imports_fail_with_what_is_wrong) {
  FalseNameserver nameserver;
  Random random(test_seed());
  std::vector<Packet> packets = undecodable_packets(random, encoded(conformance_answer()));
  packets.push_back(encoded(conformance_answer()));  // lacks its descriptors
  packets.push_back(encoded({1, shim::Exported{1}, {}, {}}));
  const auto import_answered_by = [&](const Packet& packet) {
    std::optional<lrpc::Result<Conformance::Client>> client;
    std::thread importer(
        [&] { client.emplace(Conformance::Client::import("name", {.nameserver = nameserver.path()})); });
    (void)nameserver.accept_one();
    ASSERT_TRUE(send_packet(nameserver.connection(), packet));
    importer.join();
    EXPECT_EQ(client->code(), Errc::bad_message) << packet.size();
    nameserver.hang_up();
  };
  ASSERT_NO_FATAL_FAILURE(import_answered_by(packets.front()));  // the first import opens the library's own descriptors
  const std::size_t before = open_descriptors();
  for (const Packet& packet : packets) ASSERT_NO_FATAL_FAILURE(import_answered_by(packet));
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }));
}

TEST_F(BadNameserver, that_hangs_up_on_an_export_is_gone) {
  const auto exported = export_and([&](std::uint32_t) { nameserver_.leave(); });
  EXPECT_EQ(exported.code(), Errc::peer_gone) << exported.error().message();
}

}  // namespace
}  // namespace testing_lrpc
