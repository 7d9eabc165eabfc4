// Runs a fuzz target without libFuzzer: every file of the corpus, then inputs made from them and from nothing by a
// generator with a seed that is printed. What libFuzzer would call of a target's own (LLVMFuzzerInitialize,
// LLVMFuzzerCustomMutator), this does, too.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" [[gnu::weak]] int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" [[gnu::weak]] std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                                             unsigned seed);
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

constexpr std::size_t kMost = 4096;  ///< Bytes of an input that is made here.

using Bytes = std::vector<std::uint8_t>;

Bytes mutate(Bytes bytes, std::mt19937_64& random) {
  const auto below = [&random](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  for (std::size_t changes = 1 + below(8); changes > 0; --changes) {
    switch (bytes.empty() ? 1 : below(5)) {
      case 0: bytes[below(bytes.size())] = static_cast<std::uint8_t>(random()); break;
      case 1: {
        Bytes more(1 + below(96));
        for (std::uint8_t& byte : more) byte = static_cast<std::uint8_t>(below(3) == 0 ? random() : below(10));
        const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
        bytes.insert(at, more.begin(), more.end());
        break;
      }
      case 2: bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1U << below(8)); break;
      case 3:
        if (below(8) == 0) bytes.resize(below(bytes.size() + 1));
        break;
      default: {
        const std::size_t from = below(bytes.size());
        const Bytes copy(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                         bytes.begin() + static_cast<std::ptrdiff_t>(from + below(bytes.size() - from + 1)));
        bytes.insert(bytes.end(), copy.begin(), copy.end());
      }
    }
  }
  if (bytes.size() > kMost) bytes.resize(kMost);
  return bytes;
}

/// By the target's own idea of what changes are worth while, if it has one, and by chance.
Bytes next_of(Bytes bytes, std::mt19937_64& random) {
  if (LLVMFuzzerCustomMutator == nullptr || random() % 4 == 0) return mutate(std::move(bytes), random);
  const std::size_t size = bytes.size() > kMost ? kMost : bytes.size();
  bytes.resize(kMost);
  bytes.resize(LLVMFuzzerCustomMutator(bytes.data(), size, kMost, static_cast<unsigned>(random())));
  return bytes;
}

/// Of the kernel's clock itself: a target may have a time of its own behind std::chrono.
double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most) {
  static std::mt19937_64 random(1);
  const Bytes made = mutate(Bytes(data, data + size), random);
  const std::size_t count = std::min(made.size(), most);
  if (count != 0) std::memcpy(data, made.data(), count);
  return count;
}

/// Arguments: --seconds N (default 5), --seed S (default: another one each time), --keep FILE (the input under way, for
/// when it kills the program), and files or directories of the corpus.
int main(int argc, char** argv) {
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  double seconds = 5;
  std::uint64_t seed = std::random_device()();
  std::string keep;
  std::vector<Bytes> corpus(1);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      seconds = std::strtod(argv[++i], nullptr);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--keep" && i + 1 < argc) {
      keep = argv[++i];
    } else {
      std::vector<std::filesystem::path> files{argument};
      if (std::filesystem::is_directory(argument))
        files.assign(std::filesystem::directory_iterator(argument), std::filesystem::directory_iterator());
      std::sort(files.begin(), files.end());  // the same run on every file system
      for (const auto& file : files) {
        std::ifstream in(file, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
      }
    }
  }
  std::uint64_t executions = 0;
  const auto execute = [&](const Bytes& bytes) {
    if (!keep.empty()) {
      std::ofstream(keep, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++executions;
  };
  std::fprintf(stderr, "--seed %llu\n", static_cast<unsigned long long>(seed));
  for (const Bytes& bytes : corpus) execute(bytes);
  std::mt19937_64 random(seed);
  const double end = seconds_now() + seconds;
  while (seconds_now() < end) {
    Bytes next = next_of(corpus[random() % corpus.size()], random);
    execute(next);
    if (corpus.size() < 512) {
      corpus.push_back(std::move(next));
    } else if (random() % 16 == 0) {
      corpus[random() % corpus.size()] = std::move(next);
    }
  }
  std::printf("%llu executions\n", static_cast<unsigned long long>(executions));
  return 0;
}
