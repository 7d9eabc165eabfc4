// Removing a registration with rpcbind when there is no memory.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <thread>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/rpcbind.h"
#include "lrpc/netrpc/xdr.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "temporary_directory.h"

namespace lrpc::netrpc {
namespace {

TEST(RpcbindMemory, a_registration_that_ends_without_any_stays_with_rpcbind_and_ends_nothing_else) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string path = directory / "sock";
  const UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listening.get(), 4), 0);
  int calls = 0;
  std::thread rpcbind([&] {
    for (;;) {
      const UniqueFd socket(::accept(listening.get(), nullptr, nullptr));
      if (!socket) return;
      std::byte call[512];
      if (::recv(socket.get(), call, sizeof call, 0) <= 0) continue;  // the caller has given up
      ++calls;
      const auto done = XdrWriter().word(0x80000000 | 28).word(1).word(1).word(0).hyper(0).word(0).word(1).bytes();
      (void)!::send(socket.get(), done.data(), done.size(), MSG_NOSIGNAL);
    }
  });
  {
    const Result<RpcbindRegistration> made =
        RpcbindRegistration::make({.program = 0x20000099, .version = 3, .port = 24211},
                                  {.socket = path, .timeout = std::chrono::seconds(240), .replaces = false});
    EXPECT_TRUE(made);
    deny_memory(true);
  }
  deny_memory(false);
  ::shutdown(listening.get(), SHUT_RDWR);
  rpcbind.join();
  EXPECT_EQ(calls, 1) << "the registration, and no question for its end";
}

}  // namespace
}  // namespace lrpc::netrpc
