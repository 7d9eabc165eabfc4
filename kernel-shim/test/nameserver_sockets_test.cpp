// Finding the nameserver: which sockets are tried, and what is said where none answers.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/fd.h"
#include "refused_calls.h"

namespace lrpc::shim {
namespace {

/// Sets an environment variable (null: unsets it) for the duration of a scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) { value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

TEST(NameserverSockets, the_environment_decides_which_paths_are_tried) {
  Environment runtime("XDG_RUNTIME_DIR", "/tmp/somebody");
  {
    Environment socket("LRPC_SOCKET", "/tmp/mine");
    EXPECT_EQ(nameserver_sockets(), std::vector<std::string>{"/tmp/mine"});
  }
  Environment socket("LRPC_SOCKET", nullptr);
  EXPECT_EQ(nameserver_sockets(), (std::vector<std::string>{"/tmp/somebody/lrpc/lrpcd.sock", "/run/lrpc/lrpcd.sock"}));
  Environment none("XDG_RUNTIME_DIR", nullptr);
  EXPECT_EQ(nameserver_sockets(), std::vector<std::string>{"/run/lrpc/lrpcd.sock"});
}

TEST(NameserverSockets, without_a_nameserver_the_error_says_what_was_tried_and_what_to_do) {
  const std::string stale = "/tmp/lrpc-stale-" + std::to_string(::getpid());
  {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, stale.data(), stale.size());
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  auto failed = connect_nameserver(stale);
  std::filesystem::remove(stale);
  EXPECT_EQ(failed.code(), Errc::no_nameserver);
  EXPECT_NE(failed.error().text.find(stale), std::string::npos);
  EXPECT_NE(failed.error().text.find("left it behind"), std::string::npos) << failed.error().text;
  EXPECT_NE(failed.error().text.find("`lrpcd`"), std::string::npos);
  EXPECT_NE(failed.error().text.find("LRPC_SOCKET"), std::string::npos);
  EXPECT_NE(connect_nameserver("/nowhere/at/all").error().text.find("no such socket"), std::string::npos);
  EXPECT_NE(connect_nameserver(std::string(200, 'p')).error().text.find("too long"), std::string::npos);
}

TEST(NameserverSockets, without_a_nameserver_at_the_usual_ones_the_error_names_each) {
  const Environment runtime("XDG_RUNTIME_DIR", "/nowhere");
  const Environment socket("LRPC_SOCKET", nullptr);
  if (std::filesystem::exists("/run/lrpc/lrpcd.sock")) GTEST_SKIP() << "this machine has a nameserver";
  const auto failed = connect_nameserver("");
  EXPECT_EQ(failed.code(), Errc::no_nameserver);
  EXPECT_NE(failed.error().text.find("/nowhere/lrpc/lrpcd.sock (no such socket)"), std::string::npos);
  EXPECT_NE(failed.error().text.find("/run/lrpc/lrpcd.sock (no such socket)"), std::string::npos);
}

/// Listens at `path` while it lives, as a nameserver does.
class Listener {
 public:
  explicit Listener(std::string path) : path_(std::move(path)) {
    sockaddr_un address{AF_UNIX, {}};
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { std::filesystem::remove(path_); }

 private:
  const std::string path_;
  const UniqueFd socket_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
};

TEST(NameserverSockets, only_the_one_that_has_answered_is_tried_again) {
  const std::string common = "/tmp/lrpc-one-of-" + std::to_string(::getpid());
  std::vector<std::string> sockets{common + "-absent", common + "-first", common + "-second"};
  const Listener second(sockets[2]);
  {
    const Listener first(sockets[1]);
    EXPECT_TRUE(connect_first_of(sockets));
  }
  EXPECT_EQ(sockets, std::vector<std::string>{common + "-first"});
  EXPECT_EQ(connect_first_of(sockets).code(), Errc::no_nameserver) << "the second still listens";
  const Listener restarted(sockets[0]);
  EXPECT_TRUE(connect_first_of(sockets));
}

TEST(NameserverSockets, a_program_that_connects_several_times_asks_the_first_that_has_answered) {
  const std::filesystem::path runtime = "/tmp/lrpc-runtime-" + std::to_string(::getpid());
  const Environment directory("XDG_RUNTIME_DIR", runtime.c_str());
  const Environment socket("LRPC_SOCKET", nullptr);
  std::filesystem::create_directories(runtime / "lrpc");
  const std::string users = runtime / "lrpc/lrpcd.sock";
  {
    const Listener listener(users);
    EXPECT_EQ(settled_nameserver({}), users);
    EXPECT_EQ(settled_nameserver("/nowhere"), "/nowhere") << "what the program has named is not looked for";
  }
  if (!std::filesystem::exists(kSystemSocket)) {
    EXPECT_EQ(settled_nameserver({}), "");
  }
  std::filesystem::remove_all(runtime);
}

TEST(NameserverSockets, at_which_something_else_listens_are_no_nameservers) {
  const std::string path = "/tmp/lrpc-other-" + std::to_string(::getpid());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  const auto failed = connect_nameserver(path);
  std::filesystem::remove(path);
  EXPECT_EQ(failed.code(), Errc::no_nameserver);
  EXPECT_NE(failed.error().text.find("another kind"), std::string::npos) << failed.error().text;
}

TEST(NameserverSockets, that_are_no_sockets_are_called_so) {
  const std::string file = "/tmp/lrpc-no-socket-" + std::to_string(::getpid());
  std::ofstream(file) << "text";
  for (const std::string& path : {file, std::string("/tmp")}) {
    const auto failed = connect_nameserver(path);
    EXPECT_EQ(failed.code(), Errc::no_nameserver);
    EXPECT_NE(failed.error().text.find("it is no socket"), std::string::npos) << failed.error().text;
  }
  std::filesystem::remove(file);
}

/// The error of connecting to `path` in a child that has first run `before`; 0xff: success.
template <class Before>
int refusal_in_a_child(const std::string& path, Before&& before) {
  const pid_t child = ::fork();
  if (child == 0) {
    before();
    const auto socket = connect_nameserver(path);
    ::_exit(socket ? 0xff : static_cast<int>(socket.code()));
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(NameserverSockets, that_are_forbidden_are_no_nameservers_for_this_user) {
  const std::string path = "/tmp/lrpc-forbidden-" + std::to_string(::getpid());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const int refused = refusal_in_a_child(path, [] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(0xfe);
  });
  std::filesystem::remove(path);
  EXPECT_EQ(refused, static_cast<int>(Errc::no_nameserver));
}

TEST(NameserverSockets, without_a_descriptor_the_error_is_of_the_system) {
  EXPECT_EQ(refusal_in_a_child("/nowhere",
                               [] {
                                 const rlimit none{0, 0};
                                 if (::setrlimit(RLIMIT_NOFILE, &none) != 0) ::_exit(0xfe);
                               }),
            static_cast<int>(Errc::system_error));
}

TEST(NameserverSockets, for_which_memory_or_descriptors_lack_are_not_said_to_be_absent) {
  for (const int lacking : {ENOMEM, ENFILE, ENOBUFS}) {
    bool refused = false;
    Result<UniqueFd> socket = Errc::no_nameserver;
    std::vector<std::string> sockets{"/tmp/users-own", "/tmp/the-systems"};
    std::thread([&] {
      refused = testing_lrpc::refuse_calls(SYS_connect, static_cast<std::uint32_t>(lacking));
      socket = connect_first_of(sockets);
    }).join();
    if (!refused) GTEST_SKIP() << "no filters of seccomp can be set";
    EXPECT_EQ(socket.code(), Errc::system_error);
    EXPECT_EQ(socket.error().message(), system_error("connect to /tmp/users-own", lacking).message());
    EXPECT_EQ(sockets.size(), 2U);
  }
}

}  // namespace
}  // namespace lrpc::shim
