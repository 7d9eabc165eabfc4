#include "processor_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "idle_processors.h"
#include "idle_processors.skel.h"
#include "seen_idle.h"

namespace lrpc::shim {
namespace {

std::uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

Error refused(const char* what, int err) {
  return {Errc::not_supported, "eBPF: " + system_error(what, err < 0 ? -err : err).text};
}

/// What libbpf has to say reaches the user as one error, not as its own lines.
int say_nothing(libbpf_print_level, const char*, va_list) { return 0; }

struct SkeletonDeleter {
  void operator()(idle_processors_bpf* skeleton) const noexcept { idle_processors_bpf__destroy(skeleton); }
};

std::uint64_t state_of(const idle_processor& slot) noexcept { return __atomic_load_n(&slot.state, __ATOMIC_RELAXED); }

}  // namespace

struct ProcessorWatch::Impl {
  std::unique_ptr<idle_processors_bpf, SkeletonDeleter> skeleton;
  const idle_processor* slots = nullptr;
  std::size_t mapped = 0;
  UniqueFd online_list;
  // One for each possible processor.
  std::vector<bool> online;
  std::vector<SeenIdle> seen;
  std::uint64_t looked_at = 0;

  ~Impl() {
    if (slots != nullptr) ::munmap(const_cast<idle_processor*>(slots), mapped);
  }

  /// If the list cannot be read, all count as online.
  void see_who_is_online() {
    std::array<char, 4096> text;
    const ssize_t got = ::pread(online_list.get(), text.data(), text.size(), 0);
    if (got <= 0 || !parse_online({text.data(), static_cast<std::size_t>(got)}, online))
      online.assign(online.size(), true);
  }
  /// Nanoseconds, of all processors together, since the look before.
  [[nodiscard]] std::int64_t idle_since_last(std::uint64_t now) noexcept {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) sum += seen[i].look(now, state_of(slots[i]), online[i]);
    return sum;
  }
};

ProcessorWatch::ProcessorWatch(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ProcessorWatch::~ProcessorWatch() = default;

Result<std::unique_ptr<ProcessorWatch>> ProcessorWatch::attach() {
  libbpf_set_print(say_nothing);
  auto impl = std::make_unique<Impl>();
  const int possible = libbpf_num_possible_cpus();
  if (possible <= 0) return refused("counting the processors", possible);
  const auto count = static_cast<unsigned>(possible);
  impl->online.resize(count);
  impl->seen.resize(count);
  impl->online_list = UniqueFd(::open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC));
  if (!impl->online_list) return refused("opening the list of the processors online", errno);
  impl->skeleton.reset(idle_processors_bpf__open());
  if (impl->skeleton == nullptr) return refused("opening the program", errno);
  bpf_map* map = impl->skeleton->maps.processors;
  if (const int err = bpf_map__set_max_entries(map, count); err != 0) return refused("sizing its map", err);
  if (const int err = idle_processors_bpf__load(impl->skeleton.get()); err != 0)
    return refused("loading the program", err);

  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  impl->mapped = (count * sizeof(idle_processor) + page - 1) / page * page;
  void* mapped = ::mmap(nullptr, impl->mapped, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
  if (mapped == MAP_FAILED) return refused("mapping its map", errno);
  impl->slots = static_cast<const idle_processor*>(mapped);
  if (const int err = idle_processors_bpf__attach(impl->skeleton.get()); err != 0)
    return refused("attaching the program", err);
  impl->looked_at = now_ns();
  return std::unique_ptr<ProcessorWatch>(new ProcessorWatch(std::move(impl)));
}

double ProcessorWatch::idle() {
  impl_->see_who_is_online();
  const std::uint64_t now = now_ns();
  const std::int64_t more = impl_->idle_since_last(now);
  const std::uint64_t passed = now - std::exchange(impl_->looked_at, now);
  return passed > 0 && more > 0 ? static_cast<double>(more) / static_cast<double>(passed) : 0;
}

std::optional<ProcessorWatch::Cost> ProcessorWatch::cost() const {
  bpf_prog_info info{};
  __u32 size = sizeof info;
  if (bpf_obj_get_info_by_fd(bpf_program__fd(impl_->skeleton->progs.on_switch), &info, &size) != 0) return std::nullopt;
  return Cost{.runs = info.run_cnt, .nanoseconds = info.run_time_ns};
}

Result<UniqueFd> ProcessorWatch::count_cost() {
  const int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
  if (fd < 0) return refused("BPF_ENABLE_STATS", fd == -1 ? errno : fd);
  return UniqueFd(fd);
}

}  // namespace lrpc::shim
