#include "processor_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "idle_processors.h"
#include "idle_processors.skel.h"

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
  unsigned count = 0;
  std::uint64_t looked_at = 0;
  std::uint64_t idle_then = 0;

  ~Impl() {
    if (slots != nullptr) ::munmap(const_cast<idle_processor*>(slots), mapped);
  }

  /// Of all processors together, modulo 2^63.
  [[nodiscard]] std::uint64_t idle_until(std::uint64_t now) const noexcept {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += idle_ns_until(now, state_of(slots[i]));
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
  impl->count = static_cast<unsigned>(possible);
  impl->skeleton.reset(idle_processors_bpf__open());
  if (impl->skeleton == nullptr) return refused("opening the program", errno);
  bpf_map* map = impl->skeleton->maps.processors;
  if (const int err = bpf_map__set_max_entries(map, impl->count); err != 0) return refused("sizing its map", err);
  if (const int err = idle_processors_bpf__load(impl->skeleton.get()); err != 0)
    return refused("loading the program", err);

  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  impl->mapped = (impl->count * sizeof(idle_processor) + page - 1) / page * page;
  void* mapped = ::mmap(nullptr, impl->mapped, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
  if (mapped == MAP_FAILED) return refused("mapping its map", errno);
  impl->slots = static_cast<const idle_processor*>(mapped);
  if (const int err = idle_processors_bpf__attach(impl->skeleton.get()); err != 0)
    return refused("attaching the program", err);
  impl->looked_at = now_ns();
  return std::unique_ptr<ProcessorWatch>(new ProcessorWatch(std::move(impl)));
}

double ProcessorWatch::idle() {
  const std::uint64_t now = now_ns();
  const std::uint64_t idle = impl_->idle_until(now);
  // A processor that became idle after `now` was read makes the difference a little less, perhaps than nothing.
  const auto more = static_cast<std::int64_t>((idle - std::exchange(impl_->idle_then, idle)) << 1) / 2;
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
