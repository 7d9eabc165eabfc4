#include "landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::sandbox {
namespace {

// The kernel's uapi, as of ABI 6 (Linux 6.12). Numbers of system calls are the same on all architectures.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr std::uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;
constexpr int kNetPort = 2;

struct RulesetAttributes {
  std::uint64_t files = 0;
  std::uint64_t network = 0;  ///< ABI 4
  std::uint64_t scoped = 0;   ///< ABI 6
};
struct __attribute__((packed)) PathBeneath {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};
struct NetPort {
  std::uint64_t allowed = 0;
  std::uint64_t port = 0;
};

enum Access : std::uint64_t {
  kExecute = 1U << 0,
  kWriteFile = 1U << 1,
  kReadFile = 1U << 2,
  kReadDirectory = 1U << 3,
  kRemoveDirectory = 1U << 4,
  kRemoveFile = 1U << 5,
  kMakeCharacterDevice = 1U << 6,
  kMakeBlockDevice = 1U << 11,
  kAllOfAbi1 = (1U << 13) - 1,
  kRefer = 1U << 13,         ///< ABI 2: rename and link between directories
  kTruncate = 1U << 14,      ///< ABI 3
  kDeviceControl = 1U << 15  ///< ABI 5
};
constexpr std::uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kDeviceControl;
constexpr std::uint64_t kBindTcp = 1U << 0;
constexpr std::uint64_t kConnectTcp = 1U << 1;
constexpr std::uint64_t kAbstractSockets = 1U << 0;
constexpr std::uint64_t kSignals = 1U << 1;

std::uint64_t known_accesses(int abi) {
  std::uint64_t known = kAllOfAbi1;
  if (abi >= 2) known |= kRefer;
  if (abi >= 3) known |= kTruncate;
  if (abi >= 5) known |= kDeviceControl;
  return known;
}

/// Descriptors of files in /proc, kept open: procfs drops an inode that is not in use, and a Landlock rule names an
/// inode.
std::vector<UniqueFd>& pinned() {
  static std::vector<UniqueFd> fds;
  return fds;
}

/// Adds a rule for `path`. If the path does not exist, or the kernel refuses the rule, appends `path` to `missing`.
void allow(int ruleset, const std::string& path, std::uint64_t accesses, std::vector<std::string>& missing) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat found {};
  bool added = false;
  if (fd && ::fstat(fd.get(), &found) == 0) {
    const PathBeneath rule{S_ISDIR(found.st_mode) ? accesses : accesses & kOfFiles, fd.get()};
    added = rule.allowed == 0 || ::syscall(kAddRule, ruleset, kPathBeneath, &rule, 0) == 0;
  }
  if (!added) missing.push_back(path);
  if (added && path.starts_with("/proc/")) pinned().push_back(std::move(fd));
}

bool allow_ports(int ruleset, std::span<const std::uint16_t> ports, std::uint64_t access) {
  for (const std::uint16_t port : ports) {
    const NetPort rule{access, port};
    if (::syscall(kAddRule, ruleset, kNetPort, &rule, 0) != 0) return false;
  }
  return true;
}

/// The paths behind `title`; nothing if there are none.
std::string list(const char* title, const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? title : ", ") + path;
  return text;
}

std::string describe_files(const Options& options, int abi, const std::vector<std::string>& missing) {
  return "Landlock (ABI " + std::to_string(abi) + ")" + list(", readable: ", options.read_only) +
         list(", writable: ", options.read_write) + list(", removable: files in ", options.removable_in) +
         list(", not there: ", missing);
}

void none(const std::string& why, Report& report) { report.files = report.tcp = report.others = {false, why}; }

std::string why_no_landlock(int err) {
  if (err == ENOSYS) return "this kernel has no Landlock, or a filter hides it";
  if (err == EOPNOTSUPP) return "Landlock is off: the kernel was started without it (lsm=)";
  return system_error("Landlock", err).text;
}

}  // namespace

int landlock_abi() noexcept {
  const long abi = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

void restrict_by_landlock(const Options& options, Report& report) {
  const int abi = landlock_abi();
  if (abi < 1) return none(why_no_landlock(errno), report);
  RulesetAttributes attributes;
  attributes.files = known_accesses(abi);
  if (abi >= 4) attributes.network = kBindTcp | kConnectTcp;
  if (abi >= 6) attributes.scoped = kAbstractSockets | kSignals;
  // A kernel whose structure is shorter takes this one, too, if the rest is zero.
  const UniqueFd ruleset(static_cast<int>(::syscall(kCreateRuleset, &attributes, sizeof attributes, 0)));
  if (!ruleset) return none(why_no_landlock(errno), report);

  std::vector<std::string> missing;
  constexpr std::uint64_t kRead = kReadFile | kReadDirectory;
  const std::uint64_t write = attributes.files & ~std::uint64_t{kExecute | kMakeCharacterDevice | kMakeBlockDevice};
  for (const std::string& path : options.read_only) allow(ruleset.get(), path, kRead, missing);
  for (const std::string& path : options.read_write) allow(ruleset.get(), path, write, missing);
  for (const std::string& path : options.removable_in) allow(ruleset.get(), path, kRemoveFile, missing);
  if (abi >= 4 && !(allow_ports(ruleset.get(), options.tcp_bind, kBindTcp) &&
                    allow_ports(ruleset.get(), options.tcp_connect, kConnectTcp))) {
    return none(system_error("Landlock takes no rule for a port", errno).text, report);
  }
  if (::syscall(kRestrictSelf, ruleset.get(), 0) != 0) return none(why_no_landlock(errno), report);
  report.files = {true, describe_files(options, abi, missing)};
  const auto since = [abi](int first, const char* what) {
    return abi >= first ? Part{true, what} : Part{false, "needs Landlock ABI " + std::to_string(first)};
  };
  report.tcp = since(4, options.tcp_bind.empty() && options.tcp_connect.empty() ? "none" : "certain ports");
  report.others = since(6, "no signals, no abstract sockets");
}

}  // namespace lrpc::sandbox
