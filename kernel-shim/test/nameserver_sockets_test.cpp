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
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/fd.h"
#include "refused_calls.h"

namespace lrpc::shim {
namespace {

using namespace std::string_view_literals;

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

/// A socket at `path` while it lives, of a nameserver's type if not told otherwise. It listens until it is closed.
class Listener {
 public:
  explicit Listener(std::string path, int type = SOCK_SEQPACKET)
      : path_(std::move(path)), socket_(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{AF_UNIX, {}};
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// As when a nameserver has died: its socket stays at the path.
  void close() { socket_.reset(); }

 private:
  const std::string path_;
  UniqueFd socket_;
};

/// A path that no other process uses.
std::string own_path(const std::string& what) { return "/tmp/lrpc-" + what + "-" + std::to_string(::getpid()); }

/// The text with which connecting to `path` fails: there is no nameserver.
std::string why_none_at(const std::string& path) {
  const auto failed = connect_nameserver(path);
  EXPECT_EQ(failed.code(), Errc::no_nameserver);
  return failed.error().text;
}

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
  Listener stale(own_path("stale"));
  stale.close();
  const std::string why = why_none_at(stale.path());
  for (const std::string_view part :
       {std::string_view(stale.path()), "left it behind"sv, "`lrpcd`"sv, "`nameserver`"sv, "LRPC_SOCKET"sv})
    EXPECT_NE(why.find(part), std::string::npos) << part << " is not in: " << why;
  EXPECT_NE(why_none_at("/nowhere/at/all").find("no such socket"), std::string::npos);
  EXPECT_NE(why_none_at(std::string(200, 'p')).find("too long"), std::string::npos);
}

TEST(NameserverSockets, without_a_nameserver_at_the_usual_ones_the_error_names_each) {
  const Environment runtime("XDG_RUNTIME_DIR", "/nowhere");
  const Environment socket("LRPC_SOCKET", nullptr);
  if (std::filesystem::exists("/run/lrpc/lrpcd.sock")) GTEST_SKIP() << "this machine has a nameserver";
  const std::string why = why_none_at("");
  EXPECT_NE(why.find("/nowhere/lrpc/lrpcd.sock (no such socket)"), std::string::npos) << why;
  EXPECT_NE(why.find("/run/lrpc/lrpcd.sock (no such socket)"), std::string::npos) << why;
}

TEST(NameserverSockets, only_the_one_that_has_answered_is_tried_again) {
  const std::string common = own_path("one-of");
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
  const std::filesystem::path runtime = own_path("runtime");
  const Environment directory("XDG_RUNTIME_DIR", runtime.c_str());
  const Environment socket("LRPC_SOCKET", nullptr);
  std::filesystem::create_directories(runtime / "lrpc");
  const std::string users = runtime / "lrpc/lrpcd.sock";
  {
    const Listener listener(users);
    EXPECT_EQ(settled_nameserver({}).value(), users);
    EXPECT_EQ(settled_nameserver("/nowhere").value(), "/nowhere") << "what the program has named is not looked for";
    bool refused = false;
    Errc lacking{};
    std::thread([&] {
      refused = testing_lrpc::refuse_calls(SYS_connect, ENOMEM);
      lacking = settled_nameserver({}).code();
    }).join();
    EXPECT_EQ(lacking, refused ? Errc::system_error : Errc::ok);
  }
  if (!std::filesystem::exists(kSystemSocket)) {
    EXPECT_EQ(settled_nameserver({}).code(), Errc::no_nameserver);
  }
  std::filesystem::remove_all(runtime);
}

TEST(NameserverSockets, at_which_something_else_listens_are_no_nameservers) {
  const Listener other(own_path("other"), SOCK_STREAM);
  const std::string why = why_none_at(other.path());
  EXPECT_NE(why.find("another kind"), std::string::npos) << why;
}

TEST(NameserverSockets, that_are_no_sockets_are_called_so) {
  const std::string file = own_path("no-socket");
  std::ofstream(file) << "text";
  for (const std::string& path : {file, std::string("/tmp")}) {
    const std::string why = why_none_at(path);
    EXPECT_NE(why.find("it is no socket"), std::string::npos) << why;
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
  const Listener forbidden(own_path("forbidden"));
  ASSERT_EQ(::chmod(forbidden.path().c_str(), 0), 0);
  const int refused = refusal_in_a_child(forbidden.path(), [] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(0xfe);
  });
  EXPECT_EQ(refused, static_cast<int>(Errc::no_nameserver));
}

TEST(NameserverSockets, that_are_forbidden_make_nobody_start_another_nameserver) {
  bool refused = false;
  std::string why;
  std::thread([&] {
    refused = testing_lrpc::refuse_calls(SYS_connect, EACCES);
    why = why_none_at("/nowhere");
  }).join();
  if (!refused) GTEST_SKIP() << "no filters of seccomp can be set";
  EXPECT_NE(why.find("--mode"), std::string::npos) << why;
  EXPECT_EQ(why.find("start one"), std::string::npos) << why;
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
