#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lrpc/sandbox.h"

namespace lrpc::sandbox {

Status drop_capabilities(std::uint64_t keep) {
  (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (unsigned long capability = 0; capability <= CAP_LAST_CAP; ++capability)
    (void)::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);  // needs CAP_SETPCAP; no_new_privs has the same effect on exec
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> held{};
  if (::syscall(SYS_capget, &header, held.data()) != 0) return system_error("capget", errno);
  for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    held[i].permitted &= static_cast<std::uint32_t>(keep >> (32 * i));
    held[i].effective = held[i].permitted;
    held[i].inheritable = 0;
  }
  if (::syscall(SYS_capset, &header, held.data()) != 0) return system_error("capset", errno);
  return {};
}

}  // namespace lrpc::sandbox
