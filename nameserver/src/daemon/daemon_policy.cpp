#include "daemon_policy.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <sstream>
#include <utility>

namespace lrpc::nameserver {
namespace {

std::string has_been_read(const FilePolicy& policy) {
  return "read the policy " + policy.path() + ": " + std::to_string(policy.rules().size()) + " rules";
}

/// A symbolic link that leads nowhere is not missing, nor is what should be behind it: somebody wants a policy there.
bool is_missing(const std::filesystem::path& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0 || errno != ENOENT) return false;
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() || ::stat(folder.c_str(), &found) == 0 || is_missing(folder);
}

}  // namespace

UniqueFd take_signals(std::initializer_list<int> signals) {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int number : signals) ::sigaddset(&taken, number);
  ::sigprocmask(SIG_BLOCK, &taken, nullptr);
  return UniqueFd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

Result<DaemonPolicy> DaemonPolicy::open(const std::string& path, bool must_exist, ExportRule rule) {
  DaemonPolicy made;
  made.policy_ = default_policy(rule);
  if (path.empty()) return made;
  made.reload_->rule = rule;
  made.reload_->signal = take_signals({SIGHUP});
  if (!made.reload_->signal) return system_error("signalfd", errno);
  if (!must_exist && is_missing(path)) {
    made.read_ = "there is no " + path + ": everybody may import";
  } else {
    auto policy = FilePolicy::compile(load_policy_source(path), rule);
    if (!policy) return policy.error();
    made.read_ = has_been_read(**policy);
    made.policy_ = *std::move(policy);
  }
  auto reader = PolicyReader::start(path);
  if (!reader) return reader.error();
  made.reload_->reader.emplace(*std::move(reader));
  return made;
}

void DaemonPolicy::apply_to(NameserverOptions& options) {
  options.policy = policy_;
  reload_->log = options.log;
  if (!read_.empty()) options.log(LogLevel::info, read_);
  if (!reload_->reader) return;
  Reload* const reload = reload_.get();
  options.extra_watches.push_back({reload->signal.get(), [reload] { return reload->on_signal(); }});
  options.extra_watches.push_back({reload->reader->fd(), [reload] { return reload->on_answer(); }});
}

bool DaemonPolicy::Reload::on_signal() {
  signalfd_siginfo received{};
  while (::read(signal.get(), &received, sizeof received) == sizeof received) continue;
  if (auto asked = reader->ask(); !asked) stays(asked.error());
  return true;
}

bool DaemonPolicy::Reload::on_answer() try {
  // Take all answers that have come: those that take() has buffered do not make the socket readable.
  for (;;) {
    auto answer = reader->take();
    if (answer && !*answer) return true;
    const bool gone = answer.code() == Errc::peer_gone;  // nothing will ever be read again
    auto policy = FilePolicy::compile(answer ? Result<PolicySource>(**std::move(answer)) : answer.error(), rule);
    if (policy) {
      log(LogLevel::info, has_been_read(**policy));
      nameserver->set_policy(*std::move(policy));
    } else {
      stays(policy.error());
    }
    if (gone) return false;
  }
} catch (const std::bad_alloc&) {
  log(LogLevel::warning, "the policy stays as it is: there is no memory for another; send SIGHUP again");
  return true;
}

void DaemonPolicy::Reload::stays(const Error& why) const {
  log(LogLevel::warning, "the policy stays as it is:");
  std::istringstream errors(why.message());
  for (std::string one; std::getline(errors, one);) log(LogLevel::warning, one);
}

}  // namespace lrpc::nameserver
