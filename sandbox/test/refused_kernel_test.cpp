// Kernels, and filters of containers, that refuse a part of the sandbox: the other parts hold, and the report gives the
// reason.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "attempts.h"
#include "lrpc/sandbox.h"

namespace lrpc::sandbox::test {
namespace {

/// From here on one system call of this process fails with `err`. False: that could not be arranged.
bool refuse(long number, int err) {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(err)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

constexpr long kLandlockCreateRuleset = 444;

class RefusedKernel : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = in_a_child([]() -> std::string {
      const auto entered = enter();
      if (!entered) return entered.error().message();
      return entered->system_calls.holds ? "" : entered->text();
    });
    if (!why.empty()) GTEST_SKIP() << why;
  }
  /// The sandbox's report, or the error of entering it, where the system call `number` fails with `err`.
  static std::string report(long number, int err, const Options& options = {}) {
    return in_a_child([&]() -> std::string {
      if (!refuse(number, err)) return "no filter can be had";
      const auto entered = enter(options);
      return entered ? entered->text() : entered.error().message();
    });
  }
};

TEST_F(RefusedKernel, without_landlock_the_filter_holds) {
  const Victim victim;
  const std::string said = report(kLandlockCreateRuleset, ENOSYS);
  EXPECT_NE(said.find("files NOT HELD: this kernel has no Landlock"), std::string::npos) << said;
  EXPECT_NE(said.find("system calls: all but those on the list fail with EPERM"), std::string::npos) << said;
  EXPECT_EQ(in_a_child([&]() -> std::string {
              if (!refuse(kLandlockCreateRuleset, ENOSYS)) return "no filter can be had";
              if (const auto entered = enter(); !entered) return entered.error().message();
              // Files may be read, because only Landlock forbids that; everything else is refused.
              if (opening("/etc/hostname", O_RDONLY).act() != 0) return "reading";
              std::vector<Attempt> attempts = forbidden_to_all(victim.pid());
              std::erase_if(attempts, [](const Attempt& one) {
                return one.name.starts_with("open /") && one.name != "open /tmp/lrpc-sandbox-attempt" &&
                       one.name != "open /proc/self/mem";
              });
              attempts.push_back(opening("/tmp", O_WRONLY | O_TMPFILE));
              return not_refused(attempts);
            }),
            "");
}

TEST_F(RefusedKernel, landlock_that_is_switched_off_is_told_from_one_that_is_not_there) {
  const std::string said = report(kLandlockCreateRuleset, EOPNOTSUPP);
  EXPECT_NE(said.find("files NOT HELD: Landlock is off"), std::string::npos) << said;
}

TEST_F(RefusedKernel, landlock_that_fails_late_is_no_landlock) {
  const std::string said = report(kLandlockCreateRuleset + 2, EPERM);
  EXPECT_NE(said.find("files NOT HELD: Landlock: "), std::string::npos) << said;
  EXPECT_NE(said.find("TCP NOT HELD"), std::string::npos) << said;
}

TEST_F(RefusedKernel, without_seccomp_landlock_holds) {
  const std::string said = report(SYS_seccomp, EPERM);
  EXPECT_NE(said.find("system calls NOT HELD: this kernel, or a filter that is in place, allows no filters"),
            std::string::npos)
      << said;
  if (landlock_abi() < 1) return;
  EXPECT_NE(said.find("files: Landlock"), std::string::npos) << said;
  EXPECT_EQ(in_a_child([]() -> std::string {
              if (!refuse(SYS_seccomp, ENOSYS)) return "no filter can be had";
              if (const auto entered = enter(); !entered) return entered.error().message();
              return not_refused({opening("/etc/hostname", O_RDONLY), opening("/tmp/lrpc-no", O_WRONLY | O_CREAT)});
            }),
            "");
}

TEST_F(RefusedKernel, what_is_required_and_cannot_be_had_is_an_error_that_says_what) {
  Options required;
  required.required = true;
  const std::string no_landlock = report(kLandlockCreateRuleset, ENOSYS, required);
  EXPECT_NE(no_landlock.find("the sandbox is not whole"), std::string::npos) << no_landlock;
  EXPECT_NE(no_landlock.find("no Landlock"), std::string::npos) << no_landlock;
  const std::string no_filter = report(SYS_seccomp, EPERM, required);
  EXPECT_NE(no_filter.find("the sandbox is not whole"), std::string::npos) << no_filter;
  required.landlock = false;
  const std::string unwanted = report(kLandlockCreateRuleset, ENOSYS, required);
  EXPECT_EQ(unwanted.find("not whole"), std::string::npos) << unwanted;
}

/// From here on neither /proc nor unshare(2) tells how many threads this process has. False: that could not be
/// arranged.
bool hide_threads() {
#ifdef SYS_stat
  if (!refuse(SYS_stat, ENOENT)) return false;
#endif
  return refuse(SYS_newfstatat, ENOENT) && refuse(SYS_statx, ENOENT) && refuse(SYS_unshare, EPERM);
}

TEST_F(RefusedKernel, where_nothing_tells_of_other_threads_says_so) {
  Options options;
  options.keep_capabilities = 0;
  const auto said = [&] {
    return in_a_child([&]() -> std::string {
      if (!hide_threads()) return "no filter can be had";
      const auto entered = enter(options);
      return entered ? entered->text() : entered.error().message();
    });
  };
  const std::string reason = " NOT HELD: nothing tells whether this process has other threads";
  const std::string best = said();
  for (const char* const part : {"privileges", "files", "TCP", "other processes"})
    EXPECT_NE(best.find(part + reason), std::string::npos) << best;
  EXPECT_NE(best.find("memory: "), std::string::npos) << best;
  EXPECT_NE(best.find("system calls: all but those on the list fail with EPERM"), std::string::npos) << best;
  EXPECT_EQ(in_a_child([&]() -> std::string {
              if (!hide_threads()) return "no filter can be had";
              if (const auto entered = enter(options); !entered) return entered.error().message();
              return not_refused({socket_of("a TCP socket", AF_INET, SOCK_STREAM)});
            }),
            "");
  options.required = true;
  const std::string required = said();
  EXPECT_NE(required.find("Landlock holds for one thread"), std::string::npos) << required;
  EXPECT_NE(required.find("nothing tells"), std::string::npos) << required;
}

}  // namespace
}  // namespace lrpc::sandbox::test
