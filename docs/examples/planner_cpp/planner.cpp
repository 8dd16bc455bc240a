// An action planner as it runs on a vessel: loads an exported policy with LibTorch, calls it for one
// observation at a time in float64, and chooses the action from what the network returns.
//
// planner MODEL.pt < observations
//
// It checks the file's checksum before it loads it, calls the network until it is warm, and says on
// stderr what it loaded.
// A line of input is an observation: 7 numbers of the vessel itself, 5 x 5 of objects, 5 of the
// mask. To a policy that observes several decisions the lines before are the earlier ones; an empty
// line begins anew, as a new goal asks.
// A line may go on: for a network that takes quantile fractions with 32 of them, else those in the
// file are taken; for one that returns mean and spread with 2 standard normal numbers, else it acts
// by the mean. A line of output is the action: a pair in (-1, 1), times max_thrust_rate, or an index.

#include <torch/script.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sha256.h"

namespace {

constexpr int64_t kSelf = 7, kObjects = 5, kFeatures = 5, kTaus = 32, kThrusters = 2;
// TorchScript compiles in the first two calls, which takes longer than a decision may.
constexpr int kWarmUpCalls = 3;

/// Numbers of one line, taken from the front.
class Numbers {
 public:
  explicit Numbers(const std::string& line) {
    std::istringstream stream(line);
    for (std::string word; stream >> word;) {
      char* end = nullptr;
      values_.push_back(std::strtod(word.c_str(), &end));
      if (*end != '\0' || !std::isfinite(values_.back()))
        throw std::runtime_error("'" + word + "' is no finite number: give numbers and blanks");
    }
  }

  torch::Tensor take(at::IntArrayRef shape) {
    const int64_t count = c10::multiply_integers(shape);
    if (used_ + count > static_cast<int64_t>(values_.size()))
      throw std::runtime_error("a line is too short: " + std::to_string(values_.size()) +
                               " numbers; give 7 of the vessel, 25 of objects, 5 of the mask");
    const auto* first = values_.data() + used_;
    used_ += count;
    return torch::tensor(std::vector<double>(first, first + count), torch::kFloat64).reshape(shape);
  }

  bool all_taken() const { return used_ == static_cast<int64_t>(values_.size()); }

 private:
  std::vector<double> values_;
  int64_t used_ = 0;
};

/// The file's content, once its checksum has been found right: the SHA-256 of the file with zeros in
/// the place of the 64 digits behind the last mark.
std::string checked_content(const std::string& path) {
  const std::string mark = "marinenav-sha256:";
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no file " + path + ": check the name");
  std::string content{std::istreambuf_iterator<char>(file), {}};
  const auto place = content.rfind(mark);
  if (place == std::string::npos) throw std::runtime_error(path + " carries no checksum");
  const auto digits = content.substr(place + mark.size(), 64);
  auto zeroed = content;
  zeroed.replace(place + mark.size(), 64, 64, '0');
  if (sha256(zeroed) != digits) throw std::runtime_error(path + " is damaged: export it again");
  std::cerr << path << ": sha256 " << digits << '\n';
  if (!content.starts_with("PK"))  // as ZIP archives do, and ONNX files do not
    throw std::runtime_error(path + " is no TorchScript file: export with --format torchscript");
  return content;
}

/// The text under a key in the description inside the file.
std::string text_of(const std::string& description, const std::string& key) {
  const auto start = "\"" + key + "\": \"";
  const auto place = description.find(start);
  if (place == std::string::npos) return "unknown";
  const auto first = place + start.size();
  return description.substr(first, description.find('"', first) - first);
}

/// The list of numbers under a key in the description inside the file; empty if there is none.
torch::Tensor numbers_of(const std::string& description, const std::string& key) {
  const auto start = "\"" + key + "\": [";
  const auto place = description.find(start);
  if (place == std::string::npos) return {};
  const auto first = place + start.size();
  auto list = description.substr(first, description.find(']', first) - first);
  for (char& character : list)
    if (character == ',') character = ' ';
  std::istringstream stream(list);
  std::vector<double> values;
  for (double value; stream >> value;) values.push_back(value);
  return torch::tensor(values, torch::kFloat64);
}

/// The whole number under a key in the description inside the file.
int64_t number_of(const std::string& description, const std::string& key) {
  const auto start = "\"" + key + "\": ";
  const auto place = description.find(start);
  if (place == std::string::npos) throw std::runtime_error("it does not say its " + key);
  return std::stoll(description.substr(place + start.size()));
}

int64_t best(const torch::Tensor& values) { return values.argmax(-1).item<int64_t>(); }

std::string line_of(const torch::Tensor& pair) {
  std::ostringstream line;
  line.precision(17);
  line << pair[0][0].item<double>() << ' ' << pair[0][1].item<double>();
  return line.str();
}

void check_mask(const torch::Tensor& mask) {
  for (int64_t i = 0; i < kObjects; ++i) {
    const auto value = mask[0][i].item<double>();
    if (value == 0.0 || value == 1.0) continue;
    std::ostringstream message;
    message << "mask[" << i << "] is " << value << ": give 1 for an object, 0 for none";
    throw std::runtime_error(message.str());
  }
}

bool takes_fractions(const torch::jit::Module& model) {
  return model.get_method("forward").num_inputs() == 3;  // with `self`
}

/// The decisions that a policy observes, newest first.
class Memory {
 public:
  explicit Memory(int64_t frames) : frames_(frames) {}

  void forget() { parts_.clear(); }

  /// The observation at the front of the numbers, and those before it: a first one fills all places.
  torch::jit::IValue observe(Numbers& numbers) {
    const std::vector<torch::Tensor> now{numbers.take({1, kSelf}),
                                         numbers.take({1, kObjects, kFeatures}),
                                         numbers.take({1, kObjects})};
    check_mask(now.back());
    if (parts_.empty())
      for (const auto& part : now) parts_.emplace_back(frames_, part);
    std::vector<torch::jit::IValue> seen;
    for (size_t i = 0; i < now.size(); ++i) {
      parts_[i].insert(parts_[i].begin(), now[i]);
      parts_[i].pop_back();
      seen.emplace_back(torch::cat(parts_[i], 1));
    }
    return c10::ivalue::Tuple::create(std::move(seen));
  }

 private:
  int64_t frames_;
  std::vector<std::vector<torch::Tensor>> parts_;
};

/// Calls the network for an observation at the front of the numbers.
torch::jit::IValue call(torch::jit::Module& model, const std::string& description, Memory& memory,
                        Numbers& numbers) {
  std::vector<torch::jit::IValue> arguments{memory.observe(numbers)};
  if (takes_fractions(model))
    arguments.emplace_back(numbers.all_taken() ? numbers_of(description, "acting").unsqueeze(0)
                                               : numbers.take({1, kTaus}));
  return model.forward(arguments);
}

void warm_up(torch::jit::Module& model, const std::string& description, Memory& memory) {
  std::string line = "20";  // a goal ahead, at rest, nothing in sight
  for (int64_t i = 1; i < kSelf + kObjects * (kFeatures + 1); ++i) line += " 0";
  for (int i = 0; i < kWarmUpCalls; ++i) {
    Numbers numbers(line);
    call(model, description, memory, numbers);
  }
  memory.forget();
}

/// The action for a line of input, as a line of output; a malformed line has none.
std::string plan(torch::jit::Module& model, const std::string& description, Memory& memory,
                 Numbers numbers) {
  const auto answer = call(model, description, memory, numbers);
  std::string action;
  if (answer.isTuple()) {
    const auto parts = answer.toTuple()->elements();
    auto z = parts[0].toTensor();
    if (!numbers.all_taken()) z = z + parts[1].toTensor().exp() * numbers.take({1, kThrusters});
    action = line_of(2.0 / M_PI * torch::atan(z));
  } else {
    const auto result = answer.toTensor();
    if (result.scalar_type() != torch::kFloat64) throw std::runtime_error("not float64");
    if (takes_fractions(model)) {
      action = std::to_string(best(result.mean(1)));
    } else if (result.dim() == 3) {
      action = std::to_string(best(torch::matmul(result, numbers_of(description, "support"))));
    } else if (result.size(1) == kThrusters) {
      action = line_of(result);
    } else {
      action = std::to_string(best(result));
    }
  }
  if (!numbers.all_taken()) throw std::runtime_error("a line is too long");
  return action;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: planner MODEL.pt < observations\n";
    return 2;
  }
  try {
    torch::NoGradGuard no_gradients;
    torch::jit::ExtraFilesMap files{{"marinenav.json", ""}};
    std::istringstream content(checked_content(arguments[1]));
    auto model = torch::jit::load(content, torch::kCPU, files);
    std::cerr << text_of(files["marinenav.json"], "agent") << " of commit "
              << text_of(files["marinenav.json"], "commit") << '\n';
    const auto& description = files["marinenav.json"];
    const auto task = text_of(description, "task");
    if (task != "marine" && task != "unknown")
      throw std::runtime_error("it acts in the task " + task + ": this planner observes as in marine");
    Memory memory(number_of(description, "stack_k"));
    warm_up(model, description, memory);
    for (std::string line; std::getline(std::cin, line);) {
      if (line.find_first_not_of(" \t\r") == std::string::npos)
        memory.forget();
      else
        std::cout << plan(model, description, memory, Numbers(line)) << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
