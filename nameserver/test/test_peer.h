// What the nameserver's tests have in common: a peer that speaks the binder protocol without the library, and a
// nameserver.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/nameserver.h"
#include "temporary_directory.h"

namespace lrpc::nameserver::test {

using testing_lrpc::eventually;
using testing_lrpc::TemporaryDirectory;

using std::chrono::milliseconds;

/// Only so that a failing test ends.
inline constexpr milliseconds kPatience{240'000};
/// The timeout, in milliseconds, of imports that the test expects to wait.
inline constexpr std::uint32_t kWaits = 600'000;

inline std::size_t open_fds() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

inline const shim::OwnedInterfaceId kFiles{"Files", 1, 0, 0xf11e5};
inline const std::vector<AStackClass> kClasses{{64, 0, 5}, {1500, 4096, 2}};

/// One connection to a nameserver: a client's, a server's, or a hostile peer's.
class TestPeer {
 public:
  explicit TestPeer(const std::string& path) {
    auto socket = shim::connect_nameserver(path);
    EXPECT_TRUE(socket) << socket.error().message();
    if (socket) socket_ = std::move(*socket);
  }
  explicit TestPeer(UniqueFd socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  void hang_up() { socket_.reset(); }

  /// Sends a request and returns its number.
  std::uint32_t ask(shim::BinderBody body) {
    shim::BinderMessage message{++last_request_, std::move(body), {}, {}};
    const auto sent = shim::send_message(fd(), message);
    EXPECT_TRUE(sent) << sent.error().message();
    return last_request_;
  }

  /// The next message. None: the nameserver has hung up.
  std::optional<shim::BinderMessage> next() {
    auto got = shim::receive_message(fd(), kPatience);
    while (got && *got && std::holds_alternative<shim::PollerPage>((*got)->body)) {  // comes without a request
      EXPECT_EQ((*got)->fds.size(), 1U);
      if (!(*got)->fds.empty()) page = std::move((*got)->fds.front());
      got = shim::receive_message(fd(), kPatience);
    }
    if (!got) {
      EXPECT_EQ(got.code(), Errc::peer_gone) << got.error().message();
      return std::nullopt;
    }
    EXPECT_TRUE(got->has_value()) << "no message came";
    return std::move(*got);
  }
  /// The next message, which must be a Body.
  template <class Body>
  std::optional<Body> next_as() {
    auto message = next();
    if (!message) return std::nullopt;
    if (const auto* failed = std::get_if<shim::Failed>(&message->body);
        failed != nullptr && !std::is_same_v<Body, shim::Failed>) {
      ADD_FAILURE() << failed->text;
    }
    fds = std::move(message->fds);
    last_answer = message->request;
    EXPECT_TRUE(std::holds_alternative<Body>(message->body)) << "another message came: " << message->body.index();
    return std::holds_alternative<Body>(message->body) ? std::optional<Body>(std::get<Body>(std::move(message->body)))
                                                       : std::nullopt;
  }
  /// The code of the next message, which should be a Failed; ok if it is none. Its text is in `text`.
  Errc next_failure() {
    const auto failed = next_as<shim::Failed>();
    text = failed ? failed->text : "";
    return failed ? failed->code : Errc::ok;
  }
  /// True if nothing has come, and nothing comes within `moment`.
  bool quiet(milliseconds moment = milliseconds(50)) {
    pollfd entry{fd(), POLLIN, 0};
    while (::poll(&entry, 1, static_cast<int>(moment.count())) > 0) {
      const auto message = shim::receive_message(fd(), milliseconds(0));
      const bool is_page =
          message && message->has_value() && std::holds_alternative<shim::PollerPage>((*message)->body);
      if (!is_page) return false;  // the allocator's page comes with the first export, and answers no request
    }
    return true;
  }
  bool hung_up_on() {
    while (next()) continue;
    return true;
  }

  // The usual requests.
  std::uint64_t export_name(const std::string& name, const shim::OwnedInterfaceId& interface = kFiles) {
    ask(shim::ExportRequest{name, interface, kClasses, "interface " + interface.name});
    const auto exported = next_as<shim::Exported>();
    return exported ? exported->export_id : 0;
  }
  std::uint32_t import(const std::string& name, std::uint32_t timeout_ms = 0,
                       const shim::OwnedInterfaceId& interface = kFiles) {
    return ask(shim::ImportRequest{name, interface, timeout_ms, shim::Gate::handoff});
  }
  /// For a server: receives the next BindRequest and answers it. Its descriptors stay in `fds`.
  std::optional<shim::BindRequest> answer_bind(Errc code = Errc::ok, const std::string& why = {}) {
    auto request = next_as<shim::BindRequest>();
    if (request) ask(shim::BindReply{request->binding_id, code, why});
    return request;
  }
  /// Whether the nameserver serves this peer: it answers a request.
  bool is_served() {
    ask(shim::ListRequest{});
    return next_as<shim::Listed>().has_value();
  }

  UniqueFd page;                  ///< The page shared with the allocator, after next() has received it.
  std::vector<UniqueFd> fds;      ///< Of the last message taken by next_as().
  std::uint32_t last_answer = 0;  ///< The request that it answers.
  std::string text;               ///< Of the last failure.

 private:
  UniqueFd socket_;
  std::uint32_t last_request_ = 0;
};

/// A nameserver on a private socket, once for each back end. Checks that no descriptor is left at the end. Servers have
/// kPatience to answer, unless a test says otherwise.
class WithNameserver : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    fds_before_ = open_fds();
    options_.socket_path = directory_ / "lrpcd.sock";
    options_.backend = GetParam();
    options_.bind_timeout = kPatience;
  }
  void TearDown() override {
    nameserver_.reset();
    EXPECT_EQ(open_fds(), fds_before_) << "descriptors leaked";
  }
  /// Starts it with options_. Tests that do not change the options call this first.
  void start() {
    auto started = Nameserver::start(options_);
    if (!started && started.code() == Errc::not_supported) GTEST_SKIP() << started.error().message();
    ASSERT_TRUE(started) << started.error().message();
    nameserver_ = std::move(*started);
    fds_running_ = open_fds();
  }
  /// Whether the nameserver gets back to the descriptors that it had when idle. Precondition: the test's own peers are
  /// gone.
  bool back_to_idle() {
    return eventually([this] { return open_fds() == fds_running_; });
  }
  [[nodiscard]] const std::string& path() const { return options_.socket_path; }

  TemporaryDirectory directory_;
  NameserverOptions options_;
  std::unique_ptr<Nameserver> nameserver_;
  std::size_t fds_before_ = 0;
  std::size_t fds_running_ = 0;
};

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& info) {
  return info.param == Backend::epoll ? "epoll" : "io_uring";
}

#define LRPC_ON_BOTH_BACKENDS(suite)                                                                                 \
  INSTANTIATE_TEST_SUITE_P(                                                                                          \
      Backends, suite, ::testing::Values(::lrpc::nameserver::Backend::epoll, ::lrpc::nameserver::Backend::io_uring), \
      ::lrpc::nameserver::test::backend_name)

/// Holds up a nameserver from the export of "hold" on, until let_go(): by its log, which outlives it.
class HeldUp {
 public:
  explicit HeldUp(NameserverOptions& options) {
    options.log = [state = state_](LogLevel, std::string_view line) {
      if (line.find("exports 'hold'") == std::string_view::npos) return;
      state->held = true;
      while (!state->let_go) std::this_thread::sleep_for(milliseconds(1));
    };
  }
  void hold(TestPeer& peer) {
    peer.ask(shim::ExportRequest{"hold", kFiles, kClasses, ""});
    EXPECT_TRUE(eventually([&] { return state_->held.load(); }));
  }
  void let_go() { state_->let_go = true; }

 private:
  struct State {
    std::atomic<bool> held{false};
    std::atomic<bool> let_go{false};
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Starts the nameserver. Leaves the test if that was skipped or failed.
#define START_NAMESERVER()              \
  do {                                  \
    start();                            \
    if (nameserver_ == nullptr) return; \
  } while (false)

}  // namespace lrpc::nameserver::test
