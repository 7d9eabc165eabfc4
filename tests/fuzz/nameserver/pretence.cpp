#include "pretence.h"

#include <unistd.h>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::fuzz {
namespace {

constexpr std::chrono::hours kBeginning{1000};
constexpr std::chrono::nanoseconds kLook{50};

std::chrono::nanoseconds now = kBeginning;
uid_t user = 0;

}  // namespace

// These replace std::chrono::steady_clock::now() and shim::peer_credentials() at link time.
std::chrono::steady_clock::time_point wrapped_now() noexcept asm("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point wrapped_now() noexcept {
  now += kLook;
  return std::chrono::steady_clock::time_point(now);
}

Result<shim::Credentials> wrapped_credentials(int socket) asm("__wrap__ZN4lrpc4shim16peer_credentialsEi");
Result<shim::Credentials> wrapped_credentials(int /*socket*/) { return shim::Credentials{::getpid(), user, user}; }

void let_pass(std::chrono::nanoseconds time) noexcept { now += time; }
void restart_time() noexcept { now = kBeginning; }
void pretend_user(uid_t as) noexcept { user = as; }

}  // namespace lrpc::fuzz
