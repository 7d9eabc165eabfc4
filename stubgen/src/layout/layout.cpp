#include "layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lrpc::stubgen {
namespace {

constexpr std::uint64_t kWindowAlignment = 8;
constexpr std::uint64_t kTailAlignment = 64;
constexpr std::uint64_t kSlotAlignment = 64;
/// As in a region (lrpc/detail/shim/call/region.h): the bytes of a call's limit behind the image, to what a slot is
/// rounded up, and the smallest page size, to which tails are. If pages are larger, an export may still be refused.
constexpr std::uint64_t kAStackLimit = 8;
constexpr std::uint64_t kSlotStride = 128;
constexpr std::uint64_t kSmallestPage = 4096;
constexpr std::uint64_t kLengthWord = 4;
/// Bytes of an entry stub's stack: without any copy, and in addition to each value.
constexpr std::uint64_t kStubFrame = 512;
constexpr std::uint64_t kBesideValue = 64;

std::uint64_t align_down(std::uint64_t value, std::uint64_t alignment) { return value / alignment * alignment; }

/// The size and alignment that a parameter takes in the fixed part.
std::uint64_t fixed_size(const Parameter& parameter) {
  return parameter.variable() ? kLengthWord : parameter.type->size;
}
std::uint64_t fixed_alignment(const Parameter& parameter) {
  return parameter.variable() ? kLengthWord : parameter.type->alignment;
}

/// The fixed part: arguments, then results, each at its natural alignment; errors overlay the results.
void place_fixed_part(Procedure& procedure) {
  std::uint64_t end = 0;
  const auto place = [&](Parameter& parameter) {
    parameter.offset = align_up(end, fixed_alignment(parameter));
    end = parameter.offset + fixed_size(parameter);
  };
  for (Parameter& parameter : procedure.parameters)
    if (parameter.is_in()) place(parameter);
  const std::uint64_t arguments_end = end;
  for (Parameter& parameter : procedure.parameters)
    if (!parameter.is_in()) place(parameter);
  for (Raised& raised : procedure.raises) {
    raised.offset = align_up(arguments_end, raised.type->alignment);
    end = std::max(end, raised.offset + raised.type->size);
  }
  procedure.fixed_size = end;
}

/// Shares `room` bytes among the windows: from the smallest bound up, each bound that fits an equal share gets its
/// whole size; the others split the rest. But a result that the procedure writes in place must have its place before
/// the call: inline for its whole bound, or in the tail.
void share_room(std::vector<Parameter*> waiting, std::uint64_t room) {
  std::ranges::stable_sort(waiting, {}, [](const Parameter* p) { return p->type->resolved().bound; });
  while (!waiting.empty()) {
    Parameter& smallest = *waiting.front();
    const std::uint64_t share = align_down(room / waiting.size(), kWindowAlignment);
    const std::uint64_t bound = align_up(smallest.type->resolved().bound, kWindowAlignment);
    if (bound > share) {
      // All that are left are larger than the share. Those that need all or nothing go first, which leaves more for the
      // others.
      const auto whole = std::ranges::find_if(waiting, [](const Parameter* p) { return p->is_bytes() && p->is_out(); });
      if (whole != waiting.end()) {
        waiting.erase(whole);
        continue;
      }
    }
    smallest.window.inline_capacity = std::min(bound, share);
    room -= smallest.window.inline_capacity;
    waiting.erase(waiting.begin());
  }
}

/// The windows of `string` and `bytes` parameters behind the fixed part, and their ranges in the tail.
bool place_windows(Procedure& procedure, Diagnostics& diagnostics) {
  const std::uint64_t begin = align_up(procedure.fixed_size, kWindowAlignment);
  const std::uint64_t image = procedure.astack_size - limits::kAStackHead;
  if (begin > image) {
    diagnostics.error(procedure.at,
                      fmt::format("the fixed part of '{}' has {} bytes and its head {}: more than the A-stack's {}",
                                  procedure.name, begin, limits::kAStackHead, procedure.astack_size));
    const std::uint64_t enough = align_up(begin + limits::kAStackHead + kWindowAlignment, kSlotAlignment);
    diagnostics.note(procedure.at, enough <= limits::kMaxImageSize
                                       ? fmt::format("say 'astack_size {}' or more behind the procedure", enough)
                                       : "use bytes<N>, which can lie in the out-of-band tail");
    return false;
  }
  std::vector<Parameter*> variable;
  std::uint64_t wanted = begin;
  for (Parameter& parameter : procedure.parameters) {
    if (!parameter.variable()) continue;
    variable.push_back(&parameter);
    wanted += align_up(parameter.type->resolved().bound, kWindowAlignment);
  }
  const bool all_fit = wanted <= image;
  share_room(variable, all_fit ? wanted - begin : image - begin);
  procedure.image_size = all_fit ? wanted : image;

  std::uint64_t offset = begin;
  std::uint64_t tail = 0;
  for (Parameter* parameter : variable) {
    parameter->window.inline_offset = offset;
    offset += parameter->window.inline_capacity;
    if (parameter->type->resolved().bound > parameter->window.inline_capacity) {
      parameter->window.tail_offset = tail;
      tail = align_up(tail + parameter->type->resolved().bound, kTailAlignment);
    }
  }
  procedure.tail_size = tail;
  if (tail > limits::kMaxTailSize) {
    diagnostics.error(procedure.at,
                      fmt::format("'{}' needs {} bytes of out-of-band tail; the limit is {}", procedure.name, tail,
                                  limits::kMaxTailSize),
                      "lower the bounds, or pass the data in several calls");
    return false;
  }
  return true;
}

/// The ranges of the fixed part that carry the values of a call, or of a return. Adjacent ranges are joined.
std::vector<ByteRange> ranges(const Procedure& procedure, bool on_return) {
  std::vector<ByteRange> found;
  for (const Parameter& parameter : procedure.parameters) {
    if (on_return ? !parameter.is_out() : !parameter.is_in()) continue;
    const std::uint64_t size = fixed_size(parameter);
    if (!found.empty() && found.back().offset + found.back().size == parameter.offset) {
      found.back().size += size;
    } else {
      found.push_back({parameter.offset, size});
    }
  }
  return found;
}

/// The most stack that the entry stub's own copies take, also without optimisation and under sanitizers. The C++ types
/// are as large as their images.
std::uint64_t stack_need(const Procedure& procedure) {
  std::uint64_t arguments = 0;
  std::uint64_t results = 0;
  for (const Parameter& parameter : procedure.parameters) {
    if (parameter.is_bytes()) continue;                          // in scratch memory or on the A-stack
    if (parameter.is_in() && parameter.uninterpreted) continue;  // on the A-stack
    std::uint64_t& sum = parameter.is_in() ? arguments : results;
    sum += parameter.type->size + kBesideValue;
  }
  // A raised error takes the place of the results.
  for (const Raised& raised : procedure.raises) results = std::max(results, raised.type->size + kBesideValue);
  // The stack holds results up to three times: as the procedure returned them, after their conversion, and as outcome.
  const std::uint64_t copies = arguments + 3 * results;
  return align_up(kStubFrame + copies + copies / 8, kSlotAlignment);
}

bool place(Procedure& procedure, Diagnostics& diagnostics) {
  place_fixed_part(procedure);
  if (procedure.fixed_size > limits::kMaxImageSize) {
    diagnostics.error(procedure.at,
                      fmt::format("the arguments and results of '{}' have {} bytes; an A-stack holds at most {}",
                                  procedure.name, procedure.fixed_size, limits::kMaxImageSize),
                      "use bytes<N>, which can lie in the out-of-band tail");
    return false;
  }
  if (procedure.any_variable()) {
    if (!place_windows(procedure, diagnostics)) return false;
  } else {
    // All sizes are known: the A-stack size is exact (LRPC §5.2).
    procedure.image_size = procedure.fixed_size;
    if (procedure.astack_size_given) {
      diagnostics.warning(
          procedure.astack_size_given->at,
          fmt::format("astack_size has no effect: '{}' has no string or bytes, so its size is exact", procedure.name));
    }
  }
  procedure.call_ranges = ranges(procedure, false);
  procedure.return_ranges = ranges(procedure, true);
  procedure.stack_need = stack_need(procedure);
  return true;
}

/// Procedures share A-stacks if their slots round up to the same size: 64, 128, 256, 512, 1024, 1536, 2048, 4096, ...
std::uint64_t bucket(std::uint64_t image_size) {
  const std::uint64_t slot = limits::kAStackHead + image_size;
  if (slot > 1024 && slot <= 1536) return 1536;
  std::uint64_t size = kSlotAlignment;
  while (size < slot) size *= 2;
  return size;
}

void form_classes(Interface& interface) {
  std::map<std::uint64_t, AStackClass> by_bucket;
  for (const Procedure& procedure : interface.procedures) {
    AStackClass& shared = by_bucket[bucket(procedure.image_size)];
    shared.image_size = std::max(shared.image_size, procedure.image_size);
    shared.tail_size = std::max(shared.tail_size, procedure.tail_size);
    shared.count = std::max(shared.count, procedure.astacks);
  }
  for (Procedure& procedure : interface.procedures) {
    const auto own = by_bucket.find(bucket(procedure.image_size));
    procedure.astack_class = static_cast<std::size_t>(std::distance(by_bucket.begin(), own));
  }
  for (const auto& [size, shared] : by_bucket) interface.classes.push_back(shared);
}

void check_region(const Interface& interface, Diagnostics& diagnostics) {
  std::uint64_t slots = 0;
  std::uint64_t tails = 0;
  for (const AStackClass& shared : interface.classes) {
    const std::uint64_t image_end = align_up(limits::kAStackHead + shared.image_size, kAStackLimit);
    slots += shared.count * align_up(image_end + kAStackLimit, kSlotStride);
    tails += shared.count * align_up(shared.tail_size, kSmallestPage);
  }
  const std::uint64_t region = align_up(slots, kSmallestPage) + tails;
  if (region > limits::kMaxRegionSize)
    diagnostics.error(interface.at,
                      fmt::format("the A-stacks of '{}' need {} bytes; the limit for a region is {}", interface.name,
                                  region, limits::kMaxRegionSize),
                      "lower 'astacks' or the bounds of the largest parameters");
}

}  // namespace

void lay_out(Interface& interface, Diagnostics& diagnostics) {
  bool placed = true;
  for (Procedure& procedure : interface.procedures) placed = place(procedure, diagnostics) && placed;
  if (placed) {
    form_classes(interface);
    check_region(interface, diagnostics);
  }
  if (interface.callback != nullptr) lay_out(*interface.callback, diagnostics);
}

}  // namespace lrpc::stubgen
