// Registrations with a local rpcbind that the test simulates: correct, slow, silent, wrong or absent.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/rpcbind.h"
#include "lrpc/netrpc/xdr.h"
#include "temporary_directory.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

constexpr SunProgram kServed{.program = 0x20000099, .version = 3, .port = 24211};
/// Timeout for answers that are expected. It is long, because a test must not fail on a slow machine.
constexpr Duration kPatience = 240s;

/// Accepts connections one after the other. `behaves` gets the socket and the procedure of each call, and answers.
class FakeRpcbind {
 public:
  using Behaves = std::function<void(int socket, std::uint32_t procedure)>;
  explicit FakeRpcbind(std::size_t connections, Behaves behaves) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().c_str(), path().size());
    listening_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), 4), 0);
    thread_ = std::thread([this, connections, behaves = std::move(behaves)] {
      for (std::size_t i = 0; i < connections; ++i) {
        const UniqueFd socket(::accept(listening_.get(), nullptr, nullptr));
        if (!socket) return;
        std::byte call[512];
        const ssize_t size = ::recv(socket.get(), call, sizeof call, 0);
        if (size < 28) continue;  // the caller has given up
        behaves(socket.get(), WireReader(call + 24).get<std::uint32_t>());
      }
    });
  }
  ~FakeRpcbind() {
    ::shutdown(listening_.get(), SHUT_RDWR);  // every expected caller has connected
    thread_.join();
  }
  [[nodiscard]] std::string path() const { return directory_ / "sock"; }

 private:
  testing_lrpc::TemporaryDirectory directory_;
  UniqueFd listening_;
  std::thread thread_;
};

void say(int socket, std::span<const std::byte> bytes) {
  (void)!::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}
/// The reply of a boolean procedure. The only xid of a connection is 1.
std::vector<std::byte> answer(bool done) {
  return XdrWriter().word(0x80000000 | 28).word(1).word(1).word(0).hyper(0).word(0).word(done ? 1 : 0).bytes();
}
RpcbindOptions at(const FakeRpcbind& rpcbind, Duration timeout = kPatience) {
  return {.socket = rpcbind.path(), .timeout = timeout};
}
/// The outcome of a registration whose first connection behaves like that.
Errc outcome(FakeRpcbind::Behaves behaves, Duration timeout = kPatience) {
  const FakeRpcbind rpcbind(1, std::move(behaves));
  return RpcbindRegistration::make(kServed, at(rpcbind, timeout)).code();
}

/// A list with one entry: kServed at `address`.
std::vector<std::byte> all(std::string_view address) {
  XdrWriter results;
  results.word(1).word(kServed.program).word(kServed.version).text("udp").text(address).text("me").word(0);
  XdrWriter record;
  record.word(static_cast<std::uint32_t>(0x80000000 | (24 + results.bytes().size())));
  record.word(1).word(1).word(0).hyper(0).word(0);
  std::vector<std::byte> whole = record.bytes();
  whole.insert(whole.end(), results.bytes().begin(), results.bytes().end());
  return whole;
}

/// An rpcbind that lists `address` for the program, and the procedures that were called.
struct Listing {
  explicit Listing(std::size_t connections, std::string_view address)
      : rpcbind(connections, [this, address](int socket, std::uint32_t procedure) {
          {
            const std::lock_guard lock(mutex_);
            procedures_.push_back(procedure);
          }
          // At first there is no registration to remove.
          say(socket, procedure == 4 ? all(address) : answer(procedure == 1));
        }) {}
  [[nodiscard]] std::vector<std::uint32_t> procedures() {
    const std::lock_guard lock(mutex_);
    return procedures_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint32_t> procedures_;

 public:
  FakeRpcbind rpcbind;  ///< Declared last: it uses the other members.
};

constexpr const char* kOurs = "0.0.0.0.94.147";

TEST(RpcbindRegistration, replaces_what_was_there_and_takes_its_own_back) {
  Listing one(4, kOurs);
  {
    Result<RpcbindRegistration> made = RpcbindRegistration::make(kServed, at(one.rpcbind));
    ASSERT_TRUE(made) << made.error().message();
    const RpcbindRegistration moved = std::move(*made);
  }
  EXPECT_EQ(one.procedures(), (std::vector<std::uint32_t>{2, 1, 4, 2}));
}

TEST(RpcbindRegistration, leaves_alone_what_has_replaced_it) {
  Listing one(3, "0.0.0.0.94.148");
  {
    Result<RpcbindRegistration> made = RpcbindRegistration::make(kServed, at(one.rpcbind));
    ASSERT_TRUE(made) << made.error().message();
  }
  EXPECT_EQ(one.procedures(), (std::vector<std::uint32_t>{2, 1, 4}));
}

TEST(RpcbindRegistration, ends_when_another_is_assigned_to_it) {
  Listing one(8, kOurs);
  {
    Result<RpcbindRegistration> first = RpcbindRegistration::make(kServed, at(one.rpcbind));
    SunProgram elsewhere = kServed;
    elsewhere.port += 1;
    Result<RpcbindRegistration> second = RpcbindRegistration::make(elsewhere, at(one.rpcbind));
    ASSERT_TRUE(first && second);
    *first = std::move(*second);
    EXPECT_EQ(one.procedures(), (std::vector<std::uint32_t>{2, 1, 2, 1, 4, 2}));
  }
  EXPECT_EQ(one.procedures().size(), 7U) << "and the second one finds that its address is not listed";
}

TEST(RpcbindRegistration, several_that_end_together_wait_once_for_a_rpcbind_that_does_not_answer) {
  constexpr std::size_t kSeveral = 3;
  std::atomic<std::size_t> unanswered = 0;
  const FakeRpcbind rpcbind(3 * kSeveral, [&unanswered](int socket, std::uint32_t procedure) {
    if (procedure != 4) return say(socket, answer(true));
    ++unanswered;
    std::byte more;
    (void)::recv(socket, &more, 1, 0);  // blocks until the caller gives up
  });
  std::vector<RpcbindRegistration> several;
  for (std::size_t i = 0; i < kSeveral; ++i) {
    Result<RpcbindRegistration> made = RpcbindRegistration::make(kServed, at(rpcbind));
    ASSERT_TRUE(made) << made.error().message();
    several.push_back(std::move(*made));
  }
  RpcbindRegistration::end_all(several, 200ms);
  several.clear();
  EXPECT_LE(unanswered, 1U);
}

TEST(RpcbindRegistration, is_refused_where_another_one_stays) {
  const FakeRpcbind rpcbind(1, [](int socket, std::uint32_t) { say(socket, answer(false)); });
  RpcbindOptions options = at(rpcbind);
  options.replaces = false;
  EXPECT_EQ(RpcbindRegistration::make(kServed, options).code(), Errc::name_taken);
}

TEST(RpcbindRegistration, reads_an_answer_in_any_pieces) {
  const FakeRpcbind rpcbind(3, [](int socket, std::uint32_t) {  // the last reply is no list
    const std::vector<std::byte> whole = answer(true);
    for (std::size_t i = 4; i < whole.size(); ++i) {  // one fragment per byte, one packet per byte
      const bool last = i + 1 == whole.size();
      const std::vector<std::byte> mark = XdrWriter().word((last ? 0x80000000 : 0) | 1).bytes();
      for (const std::byte one : mark) say(socket, {&one, 1});
      say(socket, std::span(whole).subspan(i, 1));
    }
  });
  const Result<RpcbindRegistration> made = RpcbindRegistration::make(kServed, at(rpcbind));
  EXPECT_TRUE(made) << made.error().message();
}

TEST(RpcbindRegistration, an_answer_that_is_none_is_a_bad_message) {
  const auto says = [](std::vector<std::byte> bytes) {
    return outcome([bytes = std::move(bytes)](int socket, std::uint32_t) { say(socket, bytes); });
  };
  EXPECT_EQ(says(XdrWriter().word(0x80000000 | (256 * 1024 + 1)).bytes()), Errc::bad_message);
  EXPECT_EQ(says(XdrWriter().word(0xffffffff).bytes()), Errc::bad_message);
  EXPECT_EQ(says(XdrWriter().word(0).bytes()), Errc::bad_message);  // an endless sequence of empty fragments
  EXPECT_EQ(says(XdrWriter().word(0x80000000).bytes()), Errc::bad_message);
  EXPECT_EQ(says(XdrWriter().word(0x80000000 | 8).hyper(1).bytes()), Errc::bad_message);
}

TEST(RpcbindRegistration, a_rpcbind_that_hangs_up_or_says_nothing_is_told_apart) {
  EXPECT_EQ(outcome([](int, std::uint32_t) {}), Errc::peer_gone);
  EXPECT_EQ(outcome([](int socket, std::uint32_t) {
              const std::vector<std::byte> whole = answer(true);
              say(socket, std::span(whole).first(9));
            }),
            Errc::peer_gone);
  EXPECT_EQ(outcome(
                [](int socket, std::uint32_t) {
                  std::byte more;
                  (void)::recv(socket, &more, 1, 0);  // blocks until the caller gives up
                },
                50ms),
            Errc::timed_out);
}

TEST(RpcbindRegistration, needs_a_rpcbind_and_a_port) {
  EXPECT_EQ(RpcbindRegistration::make(kServed, {.socket = "/tmp/no-such-rpcbind"}).code(), Errc::no_nameserver);
  EXPECT_EQ(RpcbindRegistration::make(kServed, {.socket = std::string(200, 'x')}).code(), Errc::invalid_argument);
  EXPECT_EQ(RpcbindRegistration::make({.program = 7, .version = 1}, {}).code(), Errc::invalid_argument);
  EXPECT_EQ(RpcbindRegistration::make({.version = 1, .port = 5}, {}).code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace lrpc::netrpc
