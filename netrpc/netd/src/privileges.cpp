#include "privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lrpc::netd {

void close_inherited(int keep) noexcept {
  constexpr unsigned kFirst = 3;
  const auto close = [](unsigned first, unsigned last) {
    if (first <= last) (void)::syscall(SYS_close_range, first, last, 0U);
  };
  if (keep < static_cast<int>(kFirst)) return close(kFirst, ~0U);
  close(kFirst, static_cast<unsigned>(keep) - 1);
  close(static_cast<unsigned>(keep) + 1, ~0U);
}

Status drop_capabilities(bool network) {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (unsigned long capability = 0; capability <= CAP_LAST_CAP; ++capability)
    ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);  // needs CAP_SETPCAP; who lacks it cannot gain by exec either
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, held) != 0) return system_error("capget", errno);
  for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    const std::uint32_t kept = network && i == CAP_TO_INDEX(CAP_NET_RAW) ? CAP_TO_MASK(CAP_NET_RAW) : 0U;
    held[i].permitted &= kept;
    held[i].effective = held[i].permitted;
    held[i].inheritable = 0;
  }
  header = {_LINUX_CAPABILITY_VERSION_3, 0};
  if (::syscall(SYS_capset, &header, held) != 0) return system_error("capset", errno);
  return {};
}

}  // namespace lrpc::netd
